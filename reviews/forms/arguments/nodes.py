"""The places of a form: inputs, groups of inputs, lists of rows, and what is locked.

A node knows what was proposed and what was sent, prints itself by its attributes, and
reads itself back. What nobody touched is given back as the very value of the proposal.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from journal.errors import FieldError, at

from . import places, texts
from .sheet import CURRENCY, HIDDEN, Sheet
from .specs import MISSING, NUMBERS, Spec, specify
from .texts import BadValue

DEEPEST = 6
MOST_ROWS = 50  # of one list; a longer one is edited by whoever proposes it
INVISIBLE = "Has characters that a form would lose or hide. It stays as proposed."
LOCKED = "Cannot be edited here. It stays as proposed."
FIXED = "Fixed by the tool."
TOO_MANY = "Too long to be edited here. It stays as proposed."
GIVEN, ABSENT, NULL = "given", "absent", "null"
STATES = {GIVEN: "Given", ABSENT: "Left out", NULL: "Empty (null)"}


class Option(NamedTuple):
    value: str
    label: str
    selected: bool


@dataclass(frozen=True)
class At:
    """A place: how it is called everywhere, what it holds, and whether it must."""

    sheet: Sheet
    name: str
    place: str
    path: tuple[str, ...]  # names alone, without the indices of rows
    label: str
    spec: Spec
    was: Any
    required: bool = True
    new: bool = False  # in a row that was not proposed


@dataclass(frozen=True)
class Node:
    """What the inputs of every kind have."""

    at: At
    kind: ClassVar[str] = ""

    @property
    def name(self) -> str:
        return self.at.name

    @property
    def id(self) -> str:
        return places.element_id(self.at.name)

    @property
    def label(self) -> str:
        return self.at.label

    @property
    def error(self) -> str:
        return self.at.sheet.error(self.at.name)

    @property
    def optional(self) -> bool:
        return not self.at.required

    @property
    def children(self) -> tuple[Node, ...]:
        return ()

    def walk(self) -> Iterator[Node]:
        """This node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def changed(self) -> bool:
        """Whether this node itself differs, not what is below it."""
        return False

    @property
    def may_revert(self) -> bool:
        """Whether there is something of the proposal to go back to."""
        return not self.at.new

    def read(self, wrong: list[FieldError]) -> Any:
        """The value as edited; MISSING leaves it out. Adds to `wrong`."""
        raise NotImplementedError

    # Given, left out or null: a choice of its own where there is one.
    @cached_property
    def was_state(self) -> str:
        if self.at.was is MISSING:
            return ABSENT
        return NULL if self.at.was is None else GIVEN

    @cached_property
    def states(self) -> tuple[str, ...]:
        """What this place can be; only one possibility needs no choice."""
        may = {GIVEN, self.was_state}
        if not self.at.required:
            may.add(ABSENT)
        elif self.at.new:
            may.discard(ABSENT)
        if self.at.spec.nullable:
            may.add(NULL)
        return tuple(state for state in STATES if state in may)

    @cached_property
    def state(self) -> str:
        """As chosen. Whoever wrote something and left the choice alone meant it."""
        sent = self.at.sheet.text(self.name + places.STATE)
        if len(self.states) == 1:
            return self.states[0]
        if sent not in self.states:
            sent = self.was_state if self.was_state in self.states else GIVEN
        if sent == self.was_state != GIVEN and self.filled:
            return GIVEN
        return sent

    @property
    def filled(self) -> bool:
        return False

    @property
    def hint(self) -> str:
        """What the schema says of it."""
        return str(self.at.spec.schema.get("description", ""))

    @property
    def state_options(self) -> list[Option]:
        if len(self.states) == 1:
            return []
        return [Option(s, STATES[s], s == self.state) for s in self.states]

    def nothing(self) -> Any:
        return None if self.state == NULL else MISSING


@dataclass(frozen=True)
class Locked(Node):
    """Shown, and given back as it is."""

    why: str = LOCKED
    kind: ClassVar[str] = "locked"

    @property
    def value(self) -> str:
        if self.why == HIDDEN:
            return ""
        return "not given" if self.at.was is MISSING else texts.shown(self.at.was)

    def read(self, wrong: list[FieldError]) -> Any:
        fixed = self.at.spec.schema.get("const", MISSING)
        if self.at.new and self.at.required and self.at.was is MISSING:
            return fixed
        return self.at.was


@dataclass(frozen=True)
class Line(Node):
    """One input for one text, number or amount."""

    kind: ClassVar[str] = "line"

    @cached_property
    def was_text(self) -> str:
        return texts.shown(self.at.was)

    @cached_property
    def text(self) -> str:
        """What the input holds: as typed, else as proposed."""
        sent = self.at.sheet.text(self.name)
        return self.was_text if sent is None else sent

    @property
    def filled(self) -> bool:
        return self.text != "" and self.text != self.was_text

    @property
    def changed(self) -> bool:
        if self.at.new:
            return False  # its row counts as a whole
        if self.state != self.was_state:
            return self.state != GIVEN or bool(self.text) or self._says_so
        return self.state == GIVEN and self.text != self.was_text

    @property
    def was_said(self) -> str:
        """The proposed value in words."""
        words = {ABSENT: "not given", NULL: "null"}
        return words.get(self.was_state) or self.was_text or "empty"

    @property
    def multiline(self) -> bool:
        return texts.is_long(self.at.spec, self.text)

    @property
    def input_type(self) -> str:
        return texts.input_type(self.at.spec, self.text)

    @property
    def money(self) -> bool:
        return self.at.sheet.is_money(self.at.path)

    @property
    def inputmode(self) -> str:
        return texts.inputmode(self.at.spec, money=self.money)

    @property
    def hint(self) -> str:
        return texts.hint(self.at.spec)

    def read(self, wrong: list[FieldError]) -> Any:
        if self.state != GIVEN:
            return self.nothing()
        if self.was_state == GIVEN and self.text == self.was_text:
            return self.at.was
        if not self.text and self.was_state != GIVEN and not self._says_so:
            return self.at.was
        try:
            return self.typed()
        except BadValue as error:
            wrong.append(at(self.at.place, str(error)))
            return self.at.was

    def typed(self) -> Any:
        return texts.typed(self.at.spec, self.text, money=self.money)

    @property
    def _says_so(self) -> bool:
        """An empty text counts where somebody chose that it is given."""
        sent = self.at.sheet.text(self.name + places.STATE)
        return sent == GIVEN != self.was_state


@dataclass(frozen=True)
class Moment(Line):
    """A date and time, with its zone in an input of its own."""

    kind: ClassVar[str] = "moment"

    @property
    def local(self) -> str:
        return texts.shortened(self._sent[0])

    @property
    def zone(self) -> str:
        return self._sent[1]

    @property
    def was_local(self) -> str:
        return texts.shortened(texts.moment(self.was_text)[0])

    @property
    def was_zone(self) -> str:
        return texts.moment(self.was_text)[1]

    @cached_property
    def text(self) -> str:
        return texts.joined(*self._sent)

    @cached_property
    def _sent(self) -> tuple[str, str]:
        local = self.at.sheet.text(self.name)
        zone = self.at.sheet.text(self.name + places.ZONE)
        was = texts.moment(self.was_text)
        return was[0] if local is None else local, was[1] if zone is None else zone


@dataclass(frozen=True)
class Choice(Node):
    """One of a closed set; being left out and null are choices among the others."""

    kind: ClassVar[str] = "choice"

    @cached_property
    def choices(self) -> list[tuple[str, str, Any]]:
        found = texts.options(self.at.spec)
        if self.at.new and self.at.required:
            found.insert(0, ("", "Choose", MISSING))
        elif ABSENT in self.states:
            found.insert(0, ("", STATES[ABSENT], MISSING))
        if NULL in self.states:
            found.append(("#null", STATES[NULL], None))
        return found

    @cached_property
    def was_text(self) -> str:
        return next(
            (text for text, _, item in self.choices if _same(item, self.at.was)), ""
        )

    @cached_property
    def text(self) -> str:
        sent = self.at.sheet.text(self.name)
        return self.was_text if sent is None else sent

    @property
    def was_said(self) -> str:
        return next((words for t, words, _ in self.choices if t == self.was_text), "")

    @property
    def changed(self) -> bool:
        return not self.at.new and self.text != self.was_text

    @property
    def options(self) -> list[Option]:
        return [Option(t, words, t == self.text) for t, words, _ in self.choices]

    @property
    def state_options(self) -> list[Option]:
        return []

    def read(self, wrong: list[FieldError]) -> Any:
        if self.text == self.was_text:
            return self.at.was
        for text, _, item in self.choices:
            if text == self.text:
                return item
        wrong.append(at(self.at.place, "choose one of the list"))
        return self.at.was


@dataclass(frozen=True)
class Group(Node):
    """An object: its declared members as inputs, the others as they are."""

    kind: ClassVar[str] = "group"

    @property
    def may_revert(self) -> bool:
        return not self.at.new and len(self.states) > 1

    @cached_property
    def children(self) -> tuple[Node, ...]:
        if self.state != GIVEN:
            return ()
        held = self.at.was if isinstance(self.at.was, Mapping) else {}
        declared, required = self.at.spec.properties, self.at.spec.required
        # As people are shown them: what must be there first, in its declared order.
        first = [name for name in required if name in declared or name in held]
        names = dict.fromkeys([*first, *declared, *held])
        return tuple(self._member(name, held.get(name, MISSING)) for name in names)

    @property
    def changed(self) -> bool:
        return not self.at.new and self.state != self.was_state

    @property
    def was_said(self) -> str:
        return {ABSENT: "not given", NULL: "null"}.get(self.was_state, "given")

    def read(self, wrong: list[FieldError]) -> Any:
        if self.state != GIVEN:
            return self.nothing()
        found = {}
        for child in self.children:
            value = child.read(wrong)
            if value is not MISSING:
                found[child.at.path[-1]] = value
        return found

    def _member(self, name: str, value: Any) -> Node:
        subschema = self.at.spec.properties.get(name, {})
        path = (*self.at.path, name)
        sheet = self.at.sheet
        spec = specify(subschema, sheet.root, value)
        return make(
            At(
                sheet=sheet,
                name=places.child(self.name, name),
                place=places.step(self.at.place, name),
                path=path,
                label=sheet.label(path, spec.schema.get("title")),
                spec=spec,
                was=value,
                required=name in self.at.spec.required,
                new=self.at.new or self.was_state != GIVEN,
            )
        )


@dataclass(frozen=True)
class Rows(Node):
    """A list: one row an entry. A row is called by its place in the proposal, or as a
    new one, so that it stays itself wherever it is moved."""

    kind: ClassVar[str] = "rows"

    @cached_property
    def held(self) -> list[Any]:
        return self.at.was if isinstance(self.at.was, list) else []

    @property
    def was_keys(self) -> list[str]:
        return [str(number) for number in range(len(self.held))]

    @cached_property
    def keys(self) -> list[str]:
        """The rows in their order now."""
        sent = self.at.sheet.text(self.name + places.ROWS)
        if sent is None:
            return self.was_keys
        known = dict.fromkeys(key for key in sent.split() if self._is_key(key))
        return list(known)[:MOST_ROWS]

    @property
    def filled(self) -> bool:
        return bool(self.keys)

    @cached_property
    def children(self) -> tuple[Node, ...]:
        if self.state != GIVEN:
            return ()
        return tuple(self._row(n, key) for n, key in enumerate(self.keys))

    @property
    def rows(self) -> list[Row]:
        last = len(self.keys) - 1
        pairs = zip(self.keys, self.children, strict=False)
        return [Row(c, n > 0, n < last) for n, (_, c) in enumerate(pairs)]

    @property
    def order(self) -> str:
        return " ".join(self.keys)

    @property
    def may_add(self) -> bool:
        most = self.at.spec.schema.get("maxItems", MOST_ROWS)
        return bool(len(self.keys) < min(most, MOST_ROWS))

    @property
    def changed(self) -> bool:
        if self.at.new:
            return False
        return self.state != self.was_state or self.keys != self.was_keys

    @property
    def was_said(self) -> str:
        words = {ABSENT: "not given", NULL: "null"}
        count = len(self.held)
        entries = "1 entry" if count == 1 else f"{count or 'no'} entries"
        return words.get(self.was_state) or entries

    def fresh_key(self) -> str:
        """The name of one more new row."""
        used = [int(key[1:]) for key in self.keys if key[0] == "n"]
        return f"n{max(used, default=-1) + 1}"

    def read(self, wrong: list[FieldError]) -> Any:
        if self.state != GIVEN:
            return self.nothing()
        found = []
        for child in self.children:
            before = len(wrong)
            value = child.read(wrong)
            if value is MISSING and len(wrong) == before:
                said = "fill it in, or remove the row"
                wrong.append(at(child.at.place, said))
            found.append(None if value is MISSING else value)
        return found

    def _is_key(self, key: str) -> bool:
        number = key.removeprefix("n")
        if not number.isascii() or not number.isdecimal() or len(number) > 4:
            return False
        return key[0] == "n" or int(key) < len(self.held)

    def _row(self, number: int, key: str) -> Node:
        new = key[0] == "n"
        value = MISSING if new else self.held[int(key)]
        spec = specify(self.at.spec.schema.get("items", {}), self.at.sheet.root, value)
        return make(
            replace(
                self.at,
                name=places.child(self.name, key),
                place=places.step(self.at.place, number),
                label=f"{self.at.label} {number + 1}",
                spec=spec,
                was=value,
                required=True,
                new=self.at.new or new,
            )
        )


class Row(NamedTuple):
    """One row with what can be done to it."""

    node: Node
    up: bool
    down: bool


def make(where: At) -> Node:
    """The node of a place, locked where an input could not give it back exactly."""
    if why := _locked(where):
        return Locked(where, why)
    spec = where.spec
    if spec.kind == "object":
        return Group(where)
    if spec.kind == "array":
        return Rows(where)
    if spec.options or spec.kind == "boolean":
        return Choice(where)
    text = texts.shown(where.was)
    if spec.schema.get("format") == "date-time" and (not text or texts.is_moment(text)):
        return Moment(where)
    return Line(where)


def _locked(where: At) -> str:
    spec, sheet = where.spec, where.sheet
    if sheet.is_hidden(where.path):
        return HIDDEN
    if sheet.is_currency(where.path):
        return CURRENCY
    if "const" in spec.schema:
        return FIXED
    if len(where.path) > DEEPEST or not _has_inputs(where):
        return LOCKED
    if texts.loses(where.was):
        return INVISIBLE
    too_many = isinstance(where.was, list) and len(where.was) > MOST_ROWS
    return TOO_MANY if too_many else ""


def _has_inputs(where: At) -> bool:
    """Whether there is a kind of input for what is declared and for what is there."""
    spec, value = where.spec, where.was
    if spec.options:
        known = any(_same(item, value) for item in spec.options)
        return known or value is MISSING or value is None
    if value is MISSING or value is None:
        fits = bool(spec.kind)
    else:
        fits = _holds(spec.kind, value)
    if spec.kind == "object":
        return fits and bool(spec.properties)
    if spec.kind == "array":
        return fits and "prefixItems" not in spec.schema and "items" in spec.schema
    return fits and spec.kind in {"string", "boolean", *NUMBERS}


def _holds(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    types: dict[str, Any] = {
        "string": str,
        "integer": int | float,
        "number": int | float,
        "array": list,
        "object": Mapping,
    }
    return kind in types and isinstance(value, types[kind])


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1."""
    if one is MISSING or other is MISSING:
        return one is other
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)

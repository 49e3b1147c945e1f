"""The fields of an argument form: selects, single inputs, date and time, and locked
values.

Every field has a name, the proposed value, and a state: given, left out or null.
`nested` adds objects and lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from journal.errors import FieldError, build_field_error
from policies import money

from . import values
from .schema import MISSING, NUMBERS, FieldSpec, is_same_json
from .sheet import CURRENCY, HIDDEN, STATE, ZONE, FormContext, build_element_id
from .values import BadValue

GIVEN, ABSENT, NULL = "given", "absent", "null"
STATE_LABELS = {GIVEN: "Given", ABSENT: "Not given", NULL: "Empty (null)"}


class InputOption(NamedTuple):
    value: str
    label: str
    selected: bool


@dataclass(frozen=True)
class FieldPlace:
    """One place in the arguments: its names, its schema and the proposed value."""

    sheet: FormContext
    name: str
    place: str
    path: tuple[str, ...]  # property names only, without list indices
    label: str
    spec: FieldSpec
    was: Any
    required: bool = True
    new: bool = False  # in a row that was not proposed


@dataclass(frozen=True)
class FormField:
    """The base of all fields."""

    at: FieldPlace
    kind: ClassVar[str] = ""

    @property
    def name(self) -> str:
        return self.at.name

    @property
    def id(self) -> str:
        return build_element_id(self.at.name)

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
    def children(self) -> tuple[FormField, ...]:
        return ()

    def walk(self) -> Iterator[FormField]:
        """This field and all inside it."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def inputs(self) -> int:
        """How many values the browser sends for this field itself."""
        return 1 + bool(self.state_options)

    def count_inputs(self) -> int:
        """How many values the browser sends for this field and all inside it."""
        return sum(field.inputs for field in self.walk())

    @property
    def changed(self) -> bool:
        """Whether this field itself differs from the proposal."""
        return False

    @property
    def may_revert(self) -> bool:
        """Whether there is a proposed value to go back to."""
        return not self.at.new

    def read(self, wrong: list[FieldError]) -> Any:
        """The value as edited; MISSING leaves it out. Appends errors to `wrong`."""
        raise NotImplementedError

    @cached_property
    def minor_unit(self) -> str | None:
        """As `FormContext.minor_unit`, for this place."""
        return self.at.sheet.minor_unit(self.at.path)

    def format_value(self, value: Any) -> str:
        """A value as the text of its input: an amount that the tool receives in minor
        units in the currency's own units, where the form knows it."""
        if self.minor_unit and isinstance(value, int) and value >= 0:
            return money.format_amount(money.Money(value, self.minor_unit))
        return values.format_value(value)

    def format_choice(self, value: Any) -> str:
        """A value that nobody types, with the unit of an amount in minor units."""
        if self.minor_unit is None or not isinstance(value, int):
            return values.format_value(value)
        unit = self.minor_unit or "in minor units"
        return f"{self.format_value(value)} {unit}"

    # Given, left out or null: a separate select where more than one is possible.
    @cached_property
    def was_state(self) -> str:
        if self.at.was is MISSING:
            return ABSENT
        return NULL if self.at.was is None else GIVEN

    @cached_property
    def states(self) -> tuple[str, ...]:
        """The states this field may have; with only one, no choice is shown."""
        may = {GIVEN, self.was_state}
        if not self.at.required:
            may.add(ABSENT)
        elif self.at.new:
            may.discard(ABSENT)
        if self.at.spec.nullable:
            may.add(NULL)
        return tuple(state for state in STATE_LABELS if state in may)

    @cached_property
    def state(self) -> str:
        """The chosen state. A value typed beside an untouched choice is given."""
        sent = self.at.sheet.text(self.name + STATE)
        if len(self.states) == 1:
            return self.states[0]
        if sent not in self.states:
            sent = self.was_state if self.was_state in self.states else GIVEN
        if sent == self.was_state != GIVEN and self.filled:
            return GIVEN
        return sent

    @property
    def filled(self) -> bool:
        """Whether something was typed that differs from the proposal."""
        return False

    @property
    def hint(self) -> str:
        return str(self.at.spec.schema.get("description", ""))

    @property
    def state_options(self) -> list[InputOption]:
        """The states as options; empty where there is no choice."""
        if len(self.states) == 1:
            return []
        return [InputOption(s, STATE_LABELS[s], s == self.state) for s in self.states]

    def nothing(self) -> Any:
        """The value of a state other than given."""
        return None if self.state == NULL else MISSING

    @property
    def was_text(self) -> str:
        """What the input holds as proposed."""
        return self.format_value(self.at.was)

    @cached_property
    def text(self) -> str:
        """What the input holds: as typed, else as proposed."""
        typed = self.at.sheet.text(self.name)
        return self.was_text if typed is None else typed

    @property
    def was_words(self) -> str:
        """The proposed value in words, if it is given."""
        return self.was_text or "empty"

    @property
    def was_said(self) -> str:
        return {ABSENT: "not set", NULL: "null"}.get(self.was_state) or self.was_words


@dataclass(frozen=True)
class ChoiceField(FormField):
    """A select from a closed set; left out and null are options too."""

    kind: ClassVar[str] = "choice"

    @cached_property
    def choices(self) -> list[tuple[str, str, Any]]:
        """The option's text, its label and its value."""
        choices = values.build_options(self.at.spec)
        if self.minor_unit is not None:
            choices = [
                (text, self.format_choice(value), value) for text, _, value in choices
            ]
        if self.at.new and self.at.required:
            choices.insert(0, ("", "Choose", MISSING))
        elif ABSENT in self.states:
            choices.insert(0, ("", STATE_LABELS[ABSENT], MISSING))
        if NULL in self.states:
            choices.append(("#null", STATE_LABELS[NULL], None))
        return choices

    @cached_property
    def was_text(self) -> str:
        return next(
            (text for text, _, item in self.choices if is_same_json(item, self.at.was)),
            "",
        )

    @property
    def was_said(self) -> str:
        return next((words for t, words, _ in self.choices if t == self.was_text), "")

    @property
    def changed(self) -> bool:
        return not self.at.new and self.text != self.was_text

    @property
    def options(self) -> list[InputOption]:
        return [InputOption(t, words, t == self.text) for t, words, _ in self.choices]

    @property
    def state_options(self) -> list[InputOption]:
        return []

    def read(self, wrong: list[FieldError]) -> Any:
        if self.text == self.was_text:
            return self.at.was
        for text, _, item in self.choices:
            if text == self.text:
                return item
        wrong.append(build_field_error(self.at.place, "choose one of the options"))
        return self.at.was


@dataclass(frozen=True)
class LineField(FormField):
    """One input for a text, number or amount."""

    kind: ClassVar[str] = "line"

    @property
    def filled(self) -> bool:
        return self.text != "" and self.text != self.was_text

    @property
    def changed(self) -> bool:
        if self.at.new:
            return False  # a new row counts as one change
        if self.state != self.was_state:
            return self.state != GIVEN or bool(self.text) or self._says_so
        return self.state == GIVEN and self.text != self.was_text

    @property
    def multiline(self) -> bool:
        return values.is_multiline(self.at.spec, self.text)

    @property
    def wide(self) -> bool:
        return values.is_wide(self.at.spec, self.text)

    @property
    def input_type(self) -> str:
        return values.choose_input_type(self.at.spec, self.text)

    @property
    def money(self) -> bool:
        if self.minor_unit is not None:
            return bool(self.minor_unit)
        return self.at.sheet.is_money(self.at.path)

    @property
    def inputmode(self) -> str:
        return values.choose_inputmode(self.at.spec, money=self.money)

    @property
    def hint(self) -> str:
        if self.minor_unit is not None:
            return values.build_minor_hint(self.at.spec, self.minor_unit)
        return values.build_hint(self.at.spec)

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
            wrong.append(build_field_error(self.at.place, str(error)))
            return self.at.was

    def typed(self) -> Any:
        """The typed text as a value. Raises BadValue."""
        if self.minor_unit:
            return values.parse_minor_amount(
                self.at.spec, self.text.strip(), self.minor_unit
            )
        return values.parse_value(self.at.spec, self.text, money=self.money)

    @property
    def _says_so(self) -> bool:
        """Whether the person chose "given", so that an empty text counts."""
        sent = self.at.sheet.text(self.name + STATE)
        return sent == GIVEN != self.was_state


@dataclass(frozen=True)
class MomentField(LineField):
    """A date and time, with a separate input for its zone."""

    kind: ClassVar[str] = "moment"

    @property
    def inputs(self) -> int:
        return super().inputs + 1  # the zone

    @property
    def local(self) -> str:
        return values.shorten_local_time(self._sent[0])

    @property
    def zone(self) -> str:
        return self._sent[1]

    @property
    def was_local(self) -> str:
        return values.shorten_local_time(values.split_moment(self.was_text)[0])

    @property
    def was_zone(self) -> str:
        return values.split_moment(self.was_text)[1]

    @cached_property
    def text(self) -> str:
        return values.join_moment(*self._sent)

    @cached_property
    def _sent(self) -> tuple[str, str]:
        local = self.at.sheet.text(self.name)
        zone = self.at.sheet.text(self.name + ZONE)
        was = values.split_moment(self.was_text)
        return was[0] if local is None else local, was[1] if zone is None else zone


MOST_LEVELS = 6
MOST_ROWS = 50  # of one list; only the proposer can change a longer one
INVISIBLE = "Contains characters that a form would lose or hide. Stays as proposed."
LOCKED = "Cannot be edited here. Stays as proposed."
FIXED = "Fixed by the tool."
TOO_MANY = "Too long to edit here. Stays as proposed."
# Django refuses a form with more than DATA_UPLOAD_MAX_NUMBER_FIELDS; the rest of the
# panel needs some as well.
MOST_INPUTS = 900
TOO_MANY_INPUTS = (
    "More fields than one form can send. Stays as proposed: change it by the API, or "
    "send the request back to its agent."
)


@dataclass(frozen=True)
class LockedField(FormField):
    """A value that is shown and returned as proposed; `why` says why."""

    why: str = LOCKED
    kind: ClassVar[str] = "locked"

    @property
    def inputs(self) -> int:
        return 0

    @property
    def value(self) -> str:
        """The proposed value as text; empty if it is hidden."""
        if self.why == HIDDEN:
            return ""
        return "not set" if self.at.was is MISSING else self.format_choice(self.at.was)

    def read(self, wrong: list[FieldError]) -> Any:
        fixed = self.at.spec.schema.get("const", MISSING)
        if self.at.new and self.at.required and self.at.was is MISSING:
            return fixed
        return self.at.was


def find_lock_reason(where: FieldPlace) -> str:
    """Why this place cannot be edited; empty if it can."""
    spec, sheet = where.spec, where.sheet
    if sheet.is_hidden(where.path):
        return HIDDEN
    if sheet.is_currency(where.path):
        return CURRENCY
    if "const" in spec.schema:
        return FIXED
    if where.name in sheet.locked:
        return TOO_MANY_INPUTS
    if len(where.path) > MOST_LEVELS or not _has_inputs(where):
        return LOCKED
    if values.loses_characters(where.was):
        return INVISIBLE
    too_many = isinstance(where.was, list) and len(where.was) > MOST_ROWS
    return TOO_MANY if too_many else ""


def _has_inputs(where: FieldPlace) -> bool:
    """Whether there is an input for both the declared type and the proposed value."""
    spec, value = where.spec, where.was
    if spec.options:
        known = any(is_same_json(item, value) for item in spec.options)
        return known or value is MISSING or value is None
    if value is MISSING or value is None:
        fits = bool(spec.kind)
    else:
        fits = _is_of_type(spec.kind, value)
    if spec.kind == "object":
        return fits and bool(spec.properties)
    if spec.kind == "array":
        return fits and "prefixItems" not in spec.schema and "items" in spec.schema
    return fits and spec.kind in {"string", "boolean", *NUMBERS}


def _is_of_type(kind: str, value: Any) -> bool:
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

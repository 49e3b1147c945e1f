"""Fields for objects and lists, and which kind of field a place gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from journal.errors import FieldError, build_field_error

from . import values
from .fields import (
    GIVEN,
    MOST_INPUTS,
    MOST_ROWS,
    ChoiceField,
    FieldPlace,
    FormField,
    LineField,
    LockedField,
    MomentField,
    find_lock_reason,
)
from .schema import MISSING, build_spec
from .sheet import ROWS, build_child_name, build_child_path


@dataclass(frozen=True)
class GroupField(FormField):
    """An object: declared members as inputs, undeclared ones as they are."""

    kind: ClassVar[str] = "group"

    @property
    def inputs(self) -> int:
        return super().inputs - 1  # only its state, if there is a choice

    @property
    def may_revert(self) -> bool:
        return not self.at.new and len(self.states) > 1

    @cached_property
    def children(self) -> tuple[FormField, ...]:
        if self.state != GIVEN:
            return ()
        held = self.at.was if isinstance(self.at.was, Mapping) else {}
        declared, required = self.at.spec.properties, self.at.spec.required
        # The order of the review page: required members first, as declared.
        first = [name for name in required if name in declared or name in held]
        names = dict.fromkeys([*first, *declared, *held])
        return tuple(self._member(name, held.get(name, MISSING)) for name in names)

    @property
    def changed(self) -> bool:
        return not self.at.new and self.state != self.was_state

    @property
    def was_words(self) -> str:
        return "given"

    def read(self, wrong: list[FieldError]) -> Any:
        if self.state != GIVEN:
            return self.nothing()
        members = {}
        for child in self.children:
            value = child.read(wrong)
            if value is not MISSING:
                members[child.at.path[-1]] = value
        return members

    def _member(self, name: str, value: Any) -> FormField:
        subschema = self.at.spec.properties.get(name, {})
        path = (*self.at.path, name)
        sheet = self.at.sheet
        spec = build_spec(subschema, sheet.root, value)
        return build_field(
            FieldPlace(
                sheet=sheet,
                name=build_child_name(self.name, name),
                place=build_child_path(self.at.place, name),
                path=path,
                label=sheet.label(path, spec.schema.get("title")),
                spec=spec,
                was=value,
                required=name in self.at.spec.required,
                new=self.at.new or self.was_state != GIVEN,
            )
        )


@dataclass(frozen=True)
class ListField(FormField):
    """A list with one row for each entry.

    A row's key is its index in the proposal, or `n` and a number for a new one, so that
    it keeps its identity when it is moved.
    """

    kind: ClassVar[str] = "rows"

    @cached_property
    def held(self) -> list[Any]:
        """The proposed entries."""
        return self.at.was if isinstance(self.at.was, list) else []

    @property
    def was_keys(self) -> list[str]:
        return [str(number) for number in range(len(self.held))]

    @cached_property
    def keys(self) -> list[str]:
        sent = self.at.sheet.text(self.name + ROWS)
        if sent is None:
            return self.was_keys
        known = dict.fromkeys(key for key in sent.split() if self._is_key(key))
        return list(known)[:MOST_ROWS]

    @property
    def filled(self) -> bool:
        return bool(self.keys)

    @cached_property
    def children(self) -> tuple[FormField, ...]:
        if self.state != GIVEN:
            return ()
        return tuple(self._row(n, key) for n, key in enumerate(self.keys))

    @property
    def rows(self) -> list[ListRow]:
        """The rows with their move buttons."""
        last = len(self.keys) - 1
        pairs = zip(self.keys, self.children, strict=False)
        return [ListRow(c, n > 0, n < last) for n, (_, c) in enumerate(pairs)]

    @property
    def order(self) -> str:
        """The keys as the hidden input sends them."""
        return " ".join(self.keys)

    @property
    def may_add(self) -> bool:
        most = self.at.spec.schema.get("maxItems", MOST_ROWS)
        if len(self.keys) >= min(most, MOST_ROWS):
            return False
        row = self._row(len(self.keys), self.fresh_key())
        total = self.at.sheet.counted.get("inputs", 0)
        return total + row.count_inputs() <= MOST_INPUTS

    @property
    def changed(self) -> bool:
        if self.at.new:
            return False
        return self.state != self.was_state or self.keys != self.was_keys

    @property
    def was_words(self) -> str:
        count = len(self.held)
        return "1 entry" if count == 1 else f"{count or 'no'} entries"

    def fresh_key(self) -> str:
        used = [int(key[1:]) for key in self.keys if key[0] == "n"]
        return f"n{max(used, default=-1) + 1}"

    def read(self, wrong: list[FieldError]) -> Any:
        if self.state != GIVEN:
            return self.nothing()
        entries = []
        for child in self.children:
            before = len(wrong)
            value = child.read(wrong)
            if value is MISSING and len(wrong) == before:
                message = "fill in or remove the row"
                wrong.append(build_field_error(child.at.place, message))
            entries.append(None if value is MISSING else value)
        return entries

    def _is_key(self, key: str) -> bool:
        number = key.removeprefix("n")
        if not number.isascii() or not number.isdecimal() or len(number) > 4:
            return False
        return key[0] == "n" or int(key) < len(self.held)

    def _row(self, number: int, key: str) -> FormField:
        new = key[0] == "n"
        value = MISSING if new else self.held[int(key)]
        spec = build_spec(
            self.at.spec.schema.get("items", {}), self.at.sheet.root, value
        )
        return build_field(
            replace(
                self.at,
                name=build_child_name(self.name, key),
                place=build_child_path(self.at.place, number),
                label=f"{self.at.label} {number + 1}",
                spec=spec,
                was=value,
                required=True,
                new=self.at.new or new,
            )
        )


class ListRow(NamedTuple):
    """One row, and whether it can move up or down."""

    node: FormField
    up: bool
    down: bool


def build_field(where: FieldPlace) -> FormField:
    """The field of a place; locked where an input could change its value."""
    if why := find_lock_reason(where):
        return LockedField(where, why)
    spec = where.spec
    if spec.kind == "object":
        return GroupField(where)
    if spec.kind == "array":
        return ListField(where)
    if spec.options or spec.kind == "boolean":
        return ChoiceField(where)
    text = values.format_value(where.was)
    if spec.schema.get("format") == "date-time" and (
        not text or values.is_moment(text)
    ):
        return MomentField(where)
    return LineField(where)


def find_excess(root: GroupField) -> frozenset[str]:
    """The names of the fields to lock so that the form has at most MOST_INPUTS: in the
    form's order, each member that does not fit any more. A list is locked as a
    whole."""
    return frozenset(_walk_excess(root.children, [MOST_INPUTS]))


def _walk_excess(fields: Sequence[FormField], left: list[int]) -> Iterator[str]:
    for field in fields:
        needed = field.count_inputs()
        if needed <= left[0]:
            left[0] -= needed
        elif isinstance(field, GroupField) and field.inputs <= left[0]:
            left[0] -= field.inputs
            yield from _walk_excess(field.children, left)
        else:
            yield field.name

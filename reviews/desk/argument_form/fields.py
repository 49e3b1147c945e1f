"""What every place of a form is and has: its name, what was proposed, and whether it is
given, left out or null."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from journal.errors import FieldError
from reviews.forms.arguments import places

from .schema import MISSING, Spec
from .sheet import Sheet

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

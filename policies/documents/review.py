"""What of the reader's facts reviewers see, and where: declared by the policy. Pure."""

from __future__ import annotations

from functools import cached_property

from pydantic import BaseModel, ConfigDict, Field

from ..conditions import Condition, compile_condition
from .names import Line, Name

# More facts than this on top of a page are read by nobody.
MOST_FACTS = 6


_STRICT = ConfigDict(frozen=True, extra="forbid")


class Conflict(BaseModel):
    """A claim in the arguments that a fact of the reader contradicts.

    `when` is a condition like a rule's, over arguments, money, keys and the reader's
    facts. `text` is the chip that reviewers see where it holds.
    """

    model_config = _STRICT

    id: Name  # how it is stored
    text: Line = Field(min_length=1)  # the chip
    when: str  # a condition, as rules have

    @cached_property
    def condition(self) -> Condition:
        """Raises `InvalidCondition`; `parse` has asked already."""
        return compile_condition(self.when)


class Review(BaseModel):
    """Facts of the tool's reader on the pages where people decide.

    `facts` stand on top of the request page, in this order. `columns` are facts in the
    table of a batch and of its result; `result` maps a field of the tool's result to
    the heading of its column.
    """

    model_config = _STRICT

    # on top of the request page, in this order
    facts: list[Name] = Field(default=[], max_length=MOST_FACTS)
    conflicts: list[Conflict] = []
    # in the tables of a batch
    columns: list[Name] = Field(default=[], max_length=MOST_FACTS)
    # a field of the tool's result -> the heading of its column in a batch
    result: dict[str, Line] = Field(default={}, max_length=MOST_FACTS)

"""Which facts of the reader the pages show to reviewers, as the policy declares it.
Pure."""

from __future__ import annotations

from functools import cached_property

from pydantic import Field

from ..conditions import Condition, compile_condition
from .names import DocumentPart, Name, ShortText

# People do not read more facts than this at the top of a page.
MOST_FACTS = 6


class Conflict(DocumentPart):
    """A claim in the arguments that a fact of the reader contradicts.

    `when` is a condition as in a rule, on arguments, money, keys and the reader's
    facts. `text` is the chip that reviewers see where it holds.
    """

    id: Name  # its name in stored data
    text: ShortText = Field(min_length=1)  # the text of the chip
    when: str  # a condition as in a rule

    @cached_property
    def condition(self) -> Condition:
        """The compiled `when`. Raises `InvalidCondition`, but not in a document that
        `parse_document` returned."""
        return compile_condition(self.when)


class Review(DocumentPart):
    """Facts of the tool's reader on the pages where people decide.

    `facts` are shown at the top of the request page, in this order. `columns` are facts
    in the table of a batch and of its result. `result` maps a field of the tool's
    result to the heading of its column.
    """

    # at the top of the request page, in this order
    facts: list[Name] = Field(default=[], max_length=MOST_FACTS)
    conflicts: list[Conflict] = []
    # columns in the tables of a batch
    columns: list[Name] = Field(default=[], max_length=MOST_FACTS)
    # a field of the tool's result -> the heading of its column in a batch
    result: dict[str, ShortText] = Field(default={}, max_length=MOST_FACTS)

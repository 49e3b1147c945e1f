"""Where a tool's money stands when it is not in two plain arguments. Pure."""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, model_validator

from .names import CURRENCY, Line, MoneyPath, Name


class Step(NamedTuple):
    """One member of a path, and whether it goes into each element of a list."""

    name: str
    each: bool


class Amount(BaseModel):
    """Money in a list, deeper in the arguments, or known to the reader alone.

    It counts with the tool's `money` for ceilings, `critical_above`, limits, rules
    (`money.amount_minor`) and sums, and the page says what it comes to. Either `path`
    with `currency`, or `fact`. What a call leaves out moves nothing; a fact that the
    reader does not give, or that is no amount, blocks the proposal.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    # an argument such as order.total, or one of each element: items[*].price
    path: MoneyPath | None = None
    # an argument, one of the same element (items[*].currency), or a code such as USD
    currency: MoneyPath | None = None
    times: MoneyPath | None = None  # how many of it: items[*].quantity
    # of the reader: the order's total; its currency is the fact <name>_currency
    fact: Name | None = None
    label: Line = ""  # what the page calls it

    @model_validator(mode="after")
    def _one_place(self) -> Amount:
        if bool(self.path) == bool(self.fact):
            raise ValueError("name a path or a fact, one of them")
        if self.path and not self.currency:
            raise ValueError("name its currency: an argument, or a code such as USD")
        if self.fact and (self.currency or self.times):
            raise ValueError(
                f"the currency is the fact {self.fact}_currency: remove currency and"
                " times"
            )
        return self

    @property
    def name(self) -> str:
        """As measures name it."""
        return self.path or f"before.{self.fact}"

    @property
    def code(self) -> str:
        """The currency where it is written as a code."""
        found = self.currency or ""
        return found if re.fullmatch(CURRENCY, found) else ""


class Path:
    """A path of the arguments, taken apart."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        parts = self.text.split(".")
        return tuple(Step(p.removesuffix("[*]"), p.endswith("[*]")) for p in parts)

    @property
    def dotted(self) -> str:
        """Without the marks of lists, as schemas are asked."""
        return ".".join(step.name for step in self.steps)

    @property
    def list_of(self) -> str:
        """The innermost list that it goes into, empty for none."""
        return self.text.rpartition("[*]")[0]

    def beside(self, other: Path) -> bool:
        """Whether there is one of this for each of the other."""
        around = self.list_of
        return not around or other.text.startswith(f"{around}[*]")

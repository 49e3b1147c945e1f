"""Declarations of amounts of money that are not in two plain arguments. Pure."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Literal, NamedTuple, Self

from pydantic import model_validator

from .names import CURRENCY, DocumentPart, MoneyPath, Name, ShortText


class PathStep(NamedTuple):
    """A step of a path: a member, and whether the path enters each of its elements."""

    name: str
    each: bool


class SentAmount(DocumentPart):
    """What every amount in the arguments may say about how a call sends it."""

    # The argument is a whole number in the smallest unit of its currency (4200 is 42.00
    # USD), and not a decimal string.
    unit: Literal["minor"] | None = None
    # What a call means that leaves the amount out, or sends null or an empty list:
    # nothing, or everything. Required where the schema allows that.
    absent: Literal["none", "all"] | None = None
    # With absent: all, the fact of the reader that says how much everything is. Its
    # currency is the fact <name>_currency.
    whole: Name | None = None

    @model_validator(mode="after")
    def _whole_of_all(self) -> Self:
        if self.whole and self.absent != "all":
            raise ValueError("whole requires absent: all: add it, or remove whole")
        return self


class MoneyField(SentAmount):
    """Two arguments that are one amount of money and its currency: a decimal string, or
    with `unit: minor` a whole number."""

    amount: str
    currency: str

    @property
    def name(self) -> str:
        """The name of the amount in measures."""
        return self.amount


class Amount(SentAmount):
    """Money in a list, deeper in the arguments, or known only to the reader.

    It counts together with the tool's `money` for ceilings, `critical_above`, limits,
    rules (`money.amount_minor`) and sums, and the page shows the total. Write either
    `path` and `currency`, or `fact`. A fact that the reader does not give, or that is
    no amount, blocks the proposal.
    """

    # an argument such as order.total, or one in each element: items[*].price
    path: MoneyPath | None = None
    # an argument, one in the same element (items[*].currency), or a code such as USD
    currency: MoneyPath | None = None
    times: MoneyPath | None = None  # how often it counts: items[*].quantity
    # a fact of the reader; its currency is the fact <name>_currency
    fact: Name | None = None
    label: ShortText = ""  # its name on the page

    @model_validator(mode="after")
    def _one_place(self) -> Amount:
        if bool(self.path) == bool(self.fact):
            raise ValueError("set either path or fact")
        if self.path and not self.currency:
            raise ValueError("set currency: an argument, or a code such as USD")
        if self.fact and (self.unit or self.absent):
            raise ValueError(
                "unit and absent are about arguments: remove them, or write path"
            )
        if self.fact and (self.currency or self.times):
            raise ValueError(
                f"the currency is the fact {self.fact}_currency: remove currency and"
                " times"
            )
        return self

    @property
    def name(self) -> str:
        """The name of the amount in measures."""
        return self.path or f"before.{self.fact}"

    @property
    def code(self) -> str:
        """The currency if it is written as a code, else empty."""
        currency = self.currency or ""
        return currency if re.fullmatch(CURRENCY, currency) else ""


class ArgumentPath:
    """A parsed path of an argument, such as `items[*].price`."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def steps(self) -> tuple[PathStep, ...]:
        """The steps of the path, from the outermost on."""
        parts = self.text.split(".")
        return tuple(PathStep(p.removesuffix("[*]"), p.endswith("[*]")) for p in parts)

    @property
    def dotted(self) -> str:
        """The path without list marks, as `schemas.find_declared` takes it."""
        return ".".join(step.name for step in self.steps)

    @property
    def list_of(self) -> str:
        """The path of the innermost list that it goes into; empty for none."""
        return self.text.rpartition("[*]")[0]

    def beside(self, other: ArgumentPath) -> bool:
        """Whether there is exactly one value of this path for each value of `other`:
        it is outside of any list, or in a list that `other` goes into as well."""
        around = self.list_of
        return not around or other.text.startswith(f"{around}[*]")

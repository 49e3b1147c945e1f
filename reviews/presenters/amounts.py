"""What an action moves in all, and with what came before. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from policies import money

from .current import figure
from .leaves import humanise
from .shapes import Pair

if TYPE_CHECKING:
    from .common import Subject

_WITH = "this one included"


def total(subject: Subject) -> money.Money | None:
    """All its amounts together; `MIXED` in several currencies."""
    return money.together(subject.moved, money.MIXED)


def in_all(subject: Subject) -> Iterator[Pair]:
    """What several amounts are together: what ceilings and rules compare."""
    count = len(subject.moved)
    if count < 2:
        return
    sums = [money.Money(n, code) for code, n in money.totals(subject.moved).items()]
    note = f"{count} amounts together"
    if len(sums) > 1:
        note = f"{count} amounts in {len(sums)} currencies, which are not added up"
    yield Pair("In all", " and ".join(figure(one) for one in sums), note)


def sums(subject: Subject) -> tuple[Pair, ...]:
    """The rolling sums that the policy keeps, this proposal included; none of what is
    in several currencies, for they are not added up."""
    currency, found = _currency(subject), subject.facts.get("sum")
    if not currency or not isinstance(found, Mapping):
        return ()
    return tuple(
        Pair(humanise(name), figure(money.Money(total, currency)), _WITH)
        for name, total in found.items()
        if isinstance(total, int)
    )


def _currency(subject: Subject) -> str:
    """Of its rolling sums, as they were stored; empty where there is no one."""
    amount, kept = subject.amount(), subject.facts.get("money")
    if isinstance(kept, Mapping) and "currency" in kept:
        return str(kept["currency"])
    return amount.currency if amount else ""

"""What an action moves in all, and with what came before. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from policies import money
from policies.documents import Amount, Path
from policies.money import Money

from .current import figure
from .leaves import humanise
from .shapes import Pair

if TYPE_CHECKING:
    from .common import Subject

_WITH = "this one included"


def total(subject: Subject) -> Money | None:
    """All its amounts together; `MIXED` in several currencies."""
    return money.together([one.money for one in subject.moved], money.MIXED)


def in_all(subject: Subject) -> Iterator[Pair]:
    """What it moves beyond one plain amount: what stands in lists and what only the
    reader knows, then all together, as ceilings and rules compare it."""
    for amount in subject.definition.amounts:
        found = [one.money for one in subject.moved if one.name == amount.name]
        if found:
            yield _together(_label(subject, amount), found, of_reader=bool(amount.fact))
    if len({one.name for one in subject.moved}) > 1:
        yield _together("In all", [one.money for one in subject.moved])


def _label(subject: Subject, amount: Amount) -> str:
    name = amount.fact or Path(amount.path or "").dotted
    return amount.label or subject.label(name)


def _together(label: str, found: Sequence[Money], *, of_reader: bool = False) -> Pair:
    totals = money.totals(found)
    said = " and ".join(figure(Money(n, code)) for code, n in totals.items())
    return Pair(label, said, _note(len(found), len(totals), of_reader=of_reader))


def _note(amounts: int, currencies: int, *, of_reader: bool) -> str:
    if of_reader:
        return "looked up by the gate, counts as its amount"
    if amounts == 1:
        return ""
    if currencies == 1:
        return f"{amounts} amounts together"
    return f"{amounts} amounts in {currencies} currencies, which are not added up"


def sums(subject: Subject) -> tuple[Pair, ...]:
    """The rolling sums that the policy keeps, this proposal included; none of what is
    in several currencies, for they are not added up."""
    currency, found = _currency(subject), subject.facts.get("sum")
    if not currency or not isinstance(found, Mapping):
        return ()
    return tuple(
        Pair(humanise(name), figure(Money(total, currency)), _WITH)
        for name, total in found.items()
        if isinstance(total, int)
    )


def _currency(subject: Subject) -> str:
    """Of its rolling sums, as they were stored; empty where there is no one."""
    moved, kept = subject.amount() or total(subject), subject.facts.get("money")
    if isinstance(kept, Mapping) and "currency" in kept:
        return str(kept["currency"])
    return moved.currency if moved else ""

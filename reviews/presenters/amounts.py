"""Totals of what an action moves, alone and together with earlier actions. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from policies import money
from policies.calendars import describe_duration
from policies.documents import Amount, Path
from policies.money import Money

from .arguments import humanise
from .current import figure
from .shapes import Cell, Change, Pair

if TYPE_CHECKING:
    from .common import Subject


def total(subject: Subject) -> Money | None:
    """Add up all its amounts; the currency is `MIXED` if they have several.

    None if the action moves no amount.
    """
    return money.together([one.money for one in subject.moved], money.MIXED)


def in_all(subject: Subject) -> Iterator[Pair]:
    """Build the figures for all that the action moves beyond one plain amount.

    First come amounts in lists and amounts that only the reader knows, then the total,
    as ceilings and rules compare it.
    """
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
    """Build the rolling sums that the policy keeps, with this proposal and what each
    counts.

    Empty for several currencies, which are not added up.
    """
    currency, found = _currency(subject), subject.facts.get("sum")
    if not currency or not isinstance(found, Mapping):
        return ()
    return tuple(
        Pair(humanise(name), figure(Money(total, currency)), counted(subject, name))
        for name, total in found.items()
        if isinstance(total, int)
    )


def counted(subject: Subject, name: str) -> str:
    """Describe what a rolling sum counts beside this proposal, and over what time.

    Open proposals are in every window; executed ones are in it from their effect on
    (policies.facts).
    """
    found, window = subject.facts.get("count"), subject.windows.get(name)
    number = found.get(name) if isinstance(found, Mapping) else None
    if window is None or not isinstance(number, int) or number < 1:
        return "this one included"
    others = number - 1
    if not others:
        return f"no other in {describe_duration(window)}"
    more = f"{others:,} other{'' if others == 1 else 's'}"
    return f"this one and {more}, open or done in {describe_duration(window)}"


def counts(subject: Subject) -> Iterator[Change]:
    """Build the changes of numbers that the tool declares for each call.

    The number before is as read, the number after is computed. A number that was not
    read has no row.
    """
    for declared in subject.definition.counts:
        was = subject.fact(declared.fact)
        if isinstance(was, int) and not isinstance(was, bool):
            now = was + declared.by
            before, after = Cell(f"{was:,}", "number"), Cell(f"{now:,}", "number")
            yield Change(
                "changed",
                declared.label,
                declared.fact,
                before.settled,
                after.settled,
            )


def _currency(subject: Subject) -> str:
    """The currency of the rolling sums, as stored; empty if there is no single one."""
    moved, kept = subject.amount() or total(subject), subject.facts.get("money")
    if isinstance(kept, Mapping) and "currency" in kept:
        return str(kept["currency"])
    return moved.currency if moved else ""

"""Totals of what an action moves, alone and together with earlier actions. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from policies import amounts, money
from policies.calendars import describe_duration
from policies.documents import Amount, ArgumentPath, MoneyField
from policies.money import Money, format_money

from .arguments import humanise_name
from .shapes import Cell, FieldChange, SizeFigure

if TYPE_CHECKING:
    from .common import Subject


def compute_total(subject: Subject) -> Money | None:
    """Add up all its amounts; None if the action moves none. The currency is `MIXED` if
    they have several."""
    return money.combine_amounts([part.money for part in subject.moved], money.MIXED)


def build_total_figures(subject: Subject) -> Iterator[SizeFigure]:
    """Build the figures for all that the action moves beyond one plain amount. First
    come amounts in lists and amounts that only the reader knows, then the total, as
    ceilings and rules compare it."""
    for amount in subject.definition.amounts:
        moved = [part.money for part in subject.moved if part.name == amount.name]
        if moved and not any(part.is_whole for part in moved):
            label = _format_amount_label(subject, amount)
            yield _build_combined_figure(label, moved, of_reader=bool(amount.fact))
    for sent in amounts.list_absent(subject.definition, subject.args):
        yield _build_absent_figure(subject, sent)
    if len({part.name for part in subject.moved}) > 1:
        yield _build_combined_figure("Total", [part.money for part in subject.moved])


def _build_absent_figure(subject: Subject, sent: MoneyField | Amount) -> SizeFigure:
    label = _format_amount_label(subject, sent)
    if sent.absent != "all":
        return SizeFigure(label, "amount not given", "counts as nothing")
    moved = [part.money for part in subject.moved if part.name == sent.name]
    if not sent.whole or not moved or any(part.is_whole for part in moved):
        return SizeFigure(label, money.WHOLE_WORDS, "amount not given")
    note = f"amount not given, {format_money(moved[-1])} by the record"
    return SizeFigure(label, money.WHOLE_WORDS, note)


def _format_amount_label(subject: Subject, amount: MoneyField | Amount) -> str:
    if isinstance(amount, MoneyField):
        return subject.label(amount.amount)
    name = amount.fact or ArgumentPath(amount.path or "").dotted
    return amount.label or subject.label(name)


def _build_combined_figure(
    label: str, moved: Sequence[Money], *, of_reader: bool = False
) -> SizeFigure:
    if any(part.is_whole for part in moved):
        return SizeFigure(label, money.WHOLE_WORDS)
    totals = money.sum_by_currency(moved)
    sums = " and ".join(format_money(Money(n, code)) for code, n in totals.items())
    note = _describe_addition(len(moved), len(totals), of_reader=of_reader)
    return SizeFigure(label, sums, note)


def _describe_addition(count: int, currencies: int, *, of_reader: bool) -> str:
    if of_reader:
        return "looked up by Counterseal, used as the amount"
    if count == 1:
        return ""
    if currencies == 1:
        return f"{count} amounts in total"
    return f"{count} amounts in {currencies} currencies, not added up"


def build_rolling_sums(subject: Subject) -> tuple[SizeFigure, ...]:
    """Build the rolling sums that the policy keeps, with this proposal and what each
    counts. Empty for several currencies, not added up."""
    currency = _find_sum_currency(subject)
    return tuple(
        SizeFigure(
            humanise_name(name),
            _format_sum(total, currency),
            describe_sum_contents(subject, name),
        )
        for name, total in (subject.sums if currency else {}).items()
    )


def _format_sum(total: int, currency: str) -> str:
    if total >= money.WHOLE:
        return "above every figure"
    return format_money(Money(total, currency))


def describe_sum_contents(subject: Subject, name: str) -> str:
    """Describe what a rolling sum counts beside this proposal, and over what time. Open
    proposals are in every window; executed ones are in it from their effect on
    (policies.facts)."""
    counts, window = subject.facts.get("count"), subject.windows.get(name)
    number = counts.get(name) if isinstance(counts, Mapping) else None
    if window is None or not isinstance(number, int) or number < 1:
        return "including this one"
    others = number - 1
    if not others:
        return f"no other in {describe_duration(window)}"
    more = f"{others:,} other{'' if others == 1 else 's'}"
    return f"this one and {more}, open or completed in {describe_duration(window)}"


def build_count_changes(subject: Subject) -> Iterator[FieldChange]:
    """Build the changes of numbers that the tool declares for each call: before as
    read, after computed. A number that was not read has no row."""
    for declared in subject.definition.counts:
        was = subject.fact(declared.fact)
        if isinstance(was, int) and not isinstance(was, bool):
            now = was + declared.by
            before, after = (Cell(f"{n:,}", "number").settled for n in (was, now))
            yield FieldChange("changed", declared.label, declared.fact, before, after)


def _find_sum_currency(subject: Subject) -> str:
    """The currency of the rolling sums, as stored; empty if there is no single one."""
    moved = subject.amount() or compute_total(subject)
    stored = subject.facts.get("money")
    if isinstance(stored, Mapping) and "currency" in stored:
        return str(stored["currency"])
    return moved.currency if moved else ""

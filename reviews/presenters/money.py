"""Money that moves: the amount in figures and in words, and what is usual. Pure.

The payee's history comes from the tool's reader: the facts `payments_before`,
`usual_low` and `usual_high` (with their currency) and `last_currency`. Without them
nothing is assumed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from policies import money
from policies.documents import Limit
from policies.money import Money, count_decimals, format_money

from .amounts import build_rolling_sums, build_total_figures, compute_total
from .arguments import humanise_name
from .common import Subject, build_presentation
from .sentence import build_sentence
from .shapes import (
    Cell,
    FieldChange,
    Presentation,
    RiskIndicator,
    SentencePart,
    SizeFigure,
    Tag,
    TextPart,
    ValuePart,
)

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SCALES = (
    (10**12, "trillion"),
    (10**9, "billion"),
    (10**6, "million"),
    (1000, "thousand"),
    (100, "hundred"),
)
NEAR_LIMIT_PERCENT = 90  # per cent of a limit from which an amount is just under it
_SMALL, _ROUND = _ONES.split(), _TENS.split()


def show(subject: Subject) -> Presentation:
    """Present the amount first, in figures grouped by Counterseal and in words."""
    amount = subject.amount()
    if amount is None and not subject.names_amount():
        amount = compute_total(subject)
        if amount is None or amount.is_whole or amount.currency == money.MIXED:
            return build_presentation(subject)
    if amount is None:
        unread = Tag("The amount could not be read", loud=True)
        return build_presentation(subject, unread)
    balances = tuple(_build_balance_changes(subject, amount))
    covered = {change.path for change in balances}
    return build_presentation(
        subject,
        *_build_amount_tags(subject, amount),
        *_build_share_tags(subject, amount),
        sentence=_merge_amount_parts(
            build_sentence(subject, _build_headline_values(subject, amount))
        ),
        size=(
            _build_amount_figure(subject, amount),
            *build_total_figures(subject),
            *_build_payee_figures(subject),
            *_build_limited_sums(subject, amount),
        ),
        changes=(*balances, *subject.rows.changes),
        now=tuple(row for row in subject.rows.now if row.path not in covered),
        headline=_list_headline_paths(subject),
    )


def _build_amount_tags(subject: Subject, amount: Money) -> Iterator[Tag]:
    if subject.fact("payments_before") == 0:
        payee = subject.text("payee") or subject.text("account")
        yield Tag(
            "First payment to this payee",
            True,
            RiskIndicator.FIRST_PAYMENT,
            (payee,) if payee else (),
        )
    if _is_other_currency(subject, amount):
        yield Tag("Another currency than before", loud=True)
    low, high = _find_usual_range(subject, amount)
    if high and amount.minor > high:
        yield Tag(
            "More than usual for this payee",
            True,
            RiskIndicator.UNUSUAL_AMOUNT,
            (format_money(amount),),
        )
    if low and amount.minor < low:
        yield Tag("Less than usual for this payee")
    moved = compute_total(subject) or amount
    if moved.currency == money.MIXED:
        yield Tag("Amounts in several currencies", loud=True)
    for limit in subject.definition.limits:
        if limit.currency == moved.currency:
            yield from _build_limit_tags(subject, moved, limit)


def _build_limit_tags(subject: Subject, amount: Money, limit: Limit) -> Iterator[Tag]:
    """Tags for one limit of the tool: the amounts of this call exceed it together,
    nearly reach it, or exceed it together with earlier calls."""
    limited, most = format_money(limit.money), limit.money.minor
    if limit.measure:
        if subject.sums.get(limit.measure, 0) > most:
            yield Tag(f"{humanise_name(limit.measure)}: above {limited}", loud=True)
        return
    if amount.minor > most:
        yield Tag(f"Above {limited}", loud=True)
    elif amount.minor * 100 >= most * NEAR_LIMIT_PERCENT:
        yield Tag(f"Just under {limited}", loud=True)
    elif any(total > most for total in subject.sums.values()):
        yield Tag(f"Above {limited} together with earlier ones", loud=True)


def _build_payee_figures(subject: Subject) -> Iterator[SizeFigure]:
    payee, account = subject.text("payee"), subject.text("account")
    if not payee and not account:
        return
    ending = re.sub(r"\s", "", account)[-4:]
    plain = len(account) > 8 and ending.isascii() and ending.isalnum()
    notes = [f"account ending {ending}" if plain else "", _describe_history(subject)]
    note = " · ".join(note for note in notes if note)
    yield SizeFigure("To", payee or account, note, untrusted=True)


def _describe_history(subject: Subject) -> str:
    before = subject.fact("payments_before")
    if isinstance(before, bool) or not isinstance(before, int):
        return ""
    if before == 0:
        return "first payment"
    low, high = subject.fact("usual_low"), subject.fact("usual_high")
    currency = subject.fact("usual_high_currency")
    if not (isinstance(low, int) and isinstance(high, int) and currency):
        return f"{before} before"
    least, most = money.format_amount(Money(low, currency)), Money(high, currency)
    return f"{before} before, usually {least} to {format_money(most)}"


def _find_usual_range(subject: Subject, amount: Money) -> tuple[int, int]:
    if subject.fact("usual_high_currency") != amount.currency:
        return 0, 0
    facts = subject.fact("usual_low"), subject.fact("usual_high")
    low, high = (value if isinstance(value, int) else 0 for value in facts)
    return low, high


def _is_other_currency(subject: Subject, amount: Money) -> bool:
    last = subject.fact("last_currency") or subject.fact("usual_high_currency")
    return last is not None and last != amount.currency


def _build_limited_sums(subject: Subject, amount: Money) -> Iterator[SizeFigure]:
    """The rolling sums, each with its limit where the tool declares one."""
    limits = {limit.measure: limit for limit in subject.definition.limits}
    # Amounts in several currencies have no sum.
    for name, figure in zip(subject.sums, build_rolling_sums(subject), strict=False):
        limit = limits.get(name)
        if limit and limit.currency == amount.currency:
            note = f"of {format_money(limit.money)}, {figure.note}"
            yield replace(figure, note=note)
        else:
            yield figure


def _build_balance_changes(subject: Subject, amount: Money) -> Iterator[FieldChange]:
    for balance in subject.definition.balances:
        was = subject.fact(balance.fact)
        same = subject.fact(f"{balance.fact}_currency") == amount.currency
        if not isinstance(was, int) or not same:
            continue
        now = was + (amount.minor if balance.moves == "up" else -amount.minor)
        yield FieldChange(
            "changed",
            balance.label,
            balance.fact,
            Cell(format_money(Money(was, amount.currency))),
            Cell(_format_signed_money(now, amount.currency)),
        )


def _format_signed_money(minor: int, currency: str) -> str:
    text = format_money(Money(abs(minor), currency))
    return f"-{text}" if minor < 0 else text


def number_to_words(number: int) -> str:
    """Write a whole number in English: `twelve thousand five hundred`."""
    if number < 20:
        return _SMALL[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _ROUND[tens - 2] + (f"-{_SMALL[ones]}" if ones else "")
    scale, name = next(pair for pair in _SCALES if number >= pair[0])
    high, low = divmod(number, scale)
    rest = f" {number_to_words(low)}" if low else ""
    return f"{number_to_words(high)} {name}{rest}"


def amount_to_words(amount: Money) -> str:
    """Write an amount in words: whole units in English, the rest as a fraction."""
    unit = 10 ** count_decimals(amount.currency)
    whole, rest = divmod(amount.minor, unit)
    return number_to_words(whole) + (f" and {rest}/{unit}" if rest else "")


def _build_amount_figure(subject: Subject, amount: Money) -> SizeFigure:
    notes = [amount_to_words(amount)]
    notes += [f"{share:.0f} % of the {n}" for n, share in _list_shares(subject, amount)]
    return SizeFigure("Amount", format_money(amount), " · ".join(notes[:2]))


def _build_share_tags(subject: Subject, amount: Money) -> Iterator[Tag]:
    for name, share in _list_shares(subject, amount):
        if share >= 100:
            yield Tag(f"All of the {name}" if share == 100 else f"More than the {name}")


def _list_shares(subject: Subject, amount: Money) -> Iterator[tuple[str, float]]:
    """The amount in per cent of each total that the reader gave in the same
    currency."""
    for name, value in subject.reader_facts.items():
        same = subject.fact(f"{name}_currency") == amount.currency
        if name.endswith("_total") and same and isinstance(value, int) and value > 0:
            yield humanise_name(name).lower(), amount.minor * 100 / value


def _build_headline_values(subject: Subject, amount: Money) -> dict[str, SentencePart]:
    """The arguments of the headline as Counterseal reads them, for the sentence."""
    figures = format_money(amount).rpartition(" ")[::2]
    pairs = zip(_list_headline_paths(subject), figures, strict=False)
    return {path: ValuePart(text, untrusted=False) for path, text in pairs}


def _list_headline_paths(subject: Subject) -> tuple[str, ...]:
    if subject.headline is None:
        return ()
    declared, _ = subject.headline
    return declared.amount, declared.currency


def _merge_amount_parts(parts: tuple[SentencePart, ...]) -> tuple[SentencePart, ...]:
    """Merge an amount and its currency side by side into one value: `899.00 USD`."""
    merged: list[SentencePart] = []
    for part in parts:
        if _can_merge_part(merged, part):
            merged[-2:] = [ValuePart(f"{merged[-2].text} {part.text}", untrusted=False)]
        else:
            merged.append(part)
    return tuple(merged)


def _can_merge_part(merged: list[SentencePart], part: SentencePart) -> bool:
    if len(merged) < 2 or merged[-1] != TextPart(" "):
        return False
    ours = [piece for piece in (merged[-2], part) if isinstance(piece, ValuePart)]
    return len(ours) == 2 and not any(piece.untrusted for piece in ours)

"""Money that moves: the amount in figures and in words, and what is usual. Pure.

The payee's history comes from the tool's reader: the facts `payments_before`,
`usual_low` and `usual_high` (with their currency) and `last_currency`. Without them
nothing is assumed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from policies import money
from policies.documents import Limit
from policies.money import Money, exponent

from .amounts import in_all, sums, total
from .arguments import humanise
from .common import Subject, present, sentence
from .current import figure
from .shapes import Cell, Change, Pair, Part, Presentation, Tag, Text, Value

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
NEAR = 90  # per cent of a limit from which an amount is just under it
_SMALL, _ROUND = _ONES.split(), _TENS.split()


def show(subject: Subject) -> Presentation:
    """Present the amount first, in figures grouped by Holdpoint and in words."""
    amount = subject.amount()
    if amount is None and not subject.names_amount():
        amount = total(subject)
        if amount is None or amount.currency == money.MIXED:
            return present(subject)
    if amount is None:
        return present(subject, Tag("The amount could not be read", loud=True))
    moved = tuple(_balances(subject, amount))
    covered = {change.path for change in moved}
    return present(
        subject,
        *_called_out(subject, amount),
        *_whole(subject, amount),
        sentence=_merged(sentence(subject, _said(subject, amount))),
        size=(
            _pair(subject, amount),
            *in_all(subject),
            *_payee(subject),
            *_sums(subject, amount),
        ),
        changes=(*moved, *subject.rows.changes),
        now=tuple(row for row in subject.rows.now if row.path not in covered),
        headline=_headline(subject),
    )


def _called_out(subject: Subject, amount: Money) -> Iterator[Tag]:
    """Tags from the payee's history and from the limits of the tool."""
    if subject.fact("payments_before") == 0:
        yield Tag("First payment to this payee", loud=True)
    if _other_currency(subject, amount):
        yield Tag("Another currency than before", loud=True)
    low, high = _usual(subject, amount)
    if high and amount.minor > high:
        yield Tag("More than usual for this payee", loud=True)
    if low and amount.minor < low:
        yield Tag("Less than usual for this payee")
    moved = total(subject) or amount
    if moved.currency == money.MIXED:
        yield Tag("Amounts in several currencies", loud=True)
    for limit in subject.definition.limits:
        if limit.currency == moved.currency:
            yield from _against(subject, moved, limit)


def _against(subject: Subject, amount: Money, limit: Limit) -> Iterator[Tag]:
    """Tags for one limit of the tool.

    The amounts of this call exceed it together, nearly reach it, or exceed it together
    with earlier calls.
    """
    said, most = figure(limit.money), limit.money.minor
    if limit.measure:
        if _sum(subject, limit.measure) > most:
            yield Tag(f"{humanise(limit.measure)}: above {said}", loud=True)
        return
    if amount.minor > most:
        yield Tag(f"Above {said}", loud=True)
    elif amount.minor * 100 >= most * NEAR:
        yield Tag(f"Just under {said}", loud=True)
    elif any(found > most for found in _sums_of(subject)):
        yield Tag(f"Above {said} together with earlier ones", loud=True)


def _payee(subject: Subject) -> Iterator[Pair]:
    """Who gets the money, and how often before."""
    payee, account = subject.text("payee"), subject.text("account")
    if not payee and not account:
        return
    ending = re.sub(r"\s", "", account)[-4:]
    plain = len(account) > 8 and ending.isascii() and ending.isalnum()
    notes = [f"account ending {ending}" if plain else "", _history(subject)]
    said = " · ".join(note for note in notes if note)
    yield Pair("To", payee or account, said, untrusted=True)


def _history(subject: Subject) -> str:
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
    return f"{before} before, usually {least} to {figure(most)}"


def _usual(subject: Subject, amount: Money) -> tuple[int, int]:
    """The usual range for the payee in minor units of the amount's currency, else
    zeros."""
    if subject.fact("usual_high_currency") != amount.currency:
        return 0, 0
    found = subject.fact("usual_low"), subject.fact("usual_high")
    low, high = (value if isinstance(value, int) else 0 for value in found)
    return low, high


def _other_currency(subject: Subject, amount: Money) -> bool:
    last = subject.fact("last_currency") or subject.fact("usual_high_currency")
    return last is not None and last != amount.currency


def _sums(subject: Subject, amount: Money) -> Iterator[Pair]:
    """The rolling sums, each with its limit where the tool declares one."""
    limits = {limit.measure: limit for limit in subject.definition.limits}
    totals = subject.facts.get("sum")
    names = totals if isinstance(totals, Mapping) else {}
    found = [name for name, total in names.items() if isinstance(total, int)]
    # Amounts in several currencies have no sum.
    for name, pair in zip(found, sums(subject), strict=False):
        limit = limits.get(name)
        if limit and limit.currency == amount.currency:
            yield replace(pair, note=f"of {figure(limit.money)}, {pair.note}")
        else:
            yield pair


def _sums_of(subject: Subject) -> list[int]:
    found = subject.facts.get("sum")
    values = found.values() if isinstance(found, Mapping) else ()
    return [value for value in values if isinstance(value, int)]


def _sum(subject: Subject, name: str) -> int:
    found = subject.facts.get("sum")
    value = found.get(name) if isinstance(found, Mapping) else 0
    return value if isinstance(value, int) else 0


def _balances(subject: Subject, amount: Money) -> Iterator[Change]:
    """Changes of the balances that the tool declares: before as read, after
    computed."""
    facts = subject.facts.get("before")
    facts = facts if isinstance(facts, Mapping) else {}
    for balance in subject.definition.balances:
        was = facts.get(balance.fact)
        same = facts.get(f"{balance.fact}_currency") == amount.currency
        if not isinstance(was, int) or not same:
            continue
        now = was + (amount.minor if balance.moves == "up" else -amount.minor)
        yield Change(
            "changed",
            balance.label,
            balance.fact,
            Cell(figure(Money(was, amount.currency))),
            Cell(_signed(now, amount.currency)),
        )


def _signed(minor: int, currency: str) -> str:
    text = figure(Money(abs(minor), currency))
    return f"-{text}" if minor < 0 else text


def words(number: int) -> str:
    """Write a whole number in English: `twelve thousand five hundred`."""
    if number < 20:
        return _SMALL[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _ROUND[tens - 2] + (f"-{_SMALL[ones]}" if ones else "")
    scale, name = next(pair for pair in _SCALES if number >= pair[0])
    high, low = divmod(number, scale)
    rest = f" {words(low)}" if low else ""
    return f"{words(high)} {name}{rest}"


def in_words(amount: Money) -> str:
    """Write an amount in words: whole units in English, the rest as a fraction."""
    unit = 10 ** exponent(amount.currency)
    whole, rest = divmod(amount.minor, unit)
    return words(whole) + (f" and {rest}/{unit}" if rest else "")


def _pair(subject: Subject, amount: Money) -> Pair:
    shares = [
        f"{share:.0f} % of the {name}" for name, share in _shares(subject, amount)
    ]
    return Pair("Amount", figure(amount), " · ".join([in_words(amount), *shares[:1]]))


def _whole(subject: Subject, amount: Money) -> Iterator[Tag]:
    for name, share in _shares(subject, amount):
        if share >= 100:
            yield Tag(f"All of the {name}" if share == 100 else f"More than the {name}")


def _shares(subject: Subject, amount: Money) -> Iterator[tuple[str, float]]:
    """The amount in per cent of each total that the reader gave in the same
    currency."""
    facts = subject.facts.get("before")
    if not isinstance(facts, Mapping):
        return
    for name, value in facts.items():
        same = facts.get(f"{name}_currency") == amount.currency
        if name.endswith("_total") and same and isinstance(value, int) and value > 0:
            yield humanise(name).lower(), amount.minor * 100 / value


def _said(subject: Subject, amount: Money) -> dict[str, Part]:
    """The arguments of the headline as Holdpoint reads them, for the sentence."""
    found = figure(amount).rpartition(" ")[::2]
    pairs = zip(_headline(subject), found, strict=False)
    return {path: Value(text, untrusted=False) for path, text in pairs}


def _headline(subject: Subject) -> tuple[str, ...]:
    """The paths of the arguments with the headline's amount and currency."""
    found = subject.headline
    return (found[0].amount, found[0].currency) if found else ()


def _merged(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Merge an amount and its currency side by side into one value: `899.00 USD`."""
    found: list[Part] = []
    for part in parts:
        if _joins(found, part):
            found[-2:] = [Value(f"{found[-2].text} {part.text}", untrusted=False)]
        else:
            found.append(part)
    return tuple(found)


def _joins(found: list[Part], part: Part) -> bool:
    if len(found) < 2 or found[-1] != Text(" "):
        return False
    ours = [piece for piece in (found[-2], part) if isinstance(piece, Value)]
    return len(ours) == 2 and not any(piece.untrusted for piece in ours)

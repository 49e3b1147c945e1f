"""Money that moves: the amount in figures and in words, and against what. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from policies.money import Money, exponent

from .common import Subject, figure, present, sentence, sums, tags
from .leaves import humanise
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
_SMALL, _ROUND = _ONES.split(), _TENS.split()


def show(subject: Subject) -> Presentation:
    """The amount first, in figures grouped by us and in words of scale."""
    amount = subject.amount()
    if amount is None:
        unread = Tag("The amount could not be read", loud=True)
        return present(subject, tags=tags(subject, unread))
    moved = tuple(_balances(subject, amount))
    covered = {change.path for change in moved}
    return present(
        subject,
        sentence=_merged(sentence(subject, _said(subject, amount))),
        tags=tags(subject, *_whole(subject, amount)),
        size=(_pair(subject, amount), *sums(subject)),
        changes=(*moved, *subject.rows.changes),
        now=tuple(row for row in subject.rows.now if row.path not in covered),
    )


def _balances(subject: Subject, amount: Money) -> Iterator[Change]:
    """What the tool declares that its amount moves: before as read, after by sum."""
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
    """A whole number in English: `twelve thousand five hundred`."""
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
    """The scale of an amount: whole units in words, the rest as a fraction."""
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
    """The amount against every total that the reader stated in the same currency."""
    facts = subject.facts.get("before")
    if not isinstance(facts, Mapping):
        return
    for name, value in facts.items():
        same = facts.get(f"{name}_currency") == amount.currency
        if name.endswith("_total") and same and isinstance(value, int) and value > 0:
            yield humanise(name).lower(), amount.minor * 100 / value


def _said(subject: Subject, amount: Money) -> dict[str, Part]:
    """The first declared amount and its currency, as we read them."""
    text, _, currency = figure(amount).rpartition(" ")
    for part in subject.definition.money[:1]:
        return {
            part.amount: Value(text, untrusted=False),
            part.currency: Value(currency, untrusted=False),
        }
    return {}


def _merged(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """`899.00` and `USD` side by side become one value."""
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

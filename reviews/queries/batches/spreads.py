"""How the numbers of a column are spread: three figures and a line of bars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from statistics import median

from policies.money import Money
from reviews.desk.batches.columns import Bar, Column, Spread
from reviews.presenters.current import figure

from .outliers import FAR

BINS = 42
WIDE, HIGH = 10, 32  # of a bar's place and of the highest bar


def spread(column: Column) -> Spread:
    numbers = sorted(column.numbers.values())
    middle = Decimal(median(numbers))
    said = _said(column)
    return Spread(
        label=column.label,
        unit=column.unit,
        smallest=said(numbers[0]),
        middle=said(middle),
        largest=said(numbers[-1]),
        bars=list(_bars(numbers, middle)),
    )


def _said(column: Column) -> Callable[[Decimal], str]:
    if not column.unit:
        return lambda number: f"{number.normalize():f}"
    return lambda number: figure(Money(round(number), column.unit)).rpartition(" ")[0]


def _bars(numbers: Sequence[Decimal], middle: Decimal) -> Iterator[Bar]:
    low, width = numbers[0], (numbers[-1] - numbers[0]) or Decimal(1)
    counts: Counter[int] = Counter()
    hot: set[int] = set()
    for number in numbers:
        place = min(int((number - low) / width * BINS), BINS - 1)
        counts[place] += 1
        if middle > 0 and number / middle >= FAR:
            hot.add(place)
    most = max(counts.values())
    for place, count in sorted(counts.items()):
        height = max(round(HIGH * count / most), 3)
        yield Bar(place * WIDE, HIGH - height, height, place in hot)

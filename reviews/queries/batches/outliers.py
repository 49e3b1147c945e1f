"""Why a row stands out among those like it: by numbers and equality alone, never by
what a text says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from statistics import median

from reviews.desk.batches.columns import Column, Line
from reviews.presenters.shapes import Tag

from .columns import text_of

FAR = Decimal(2)  # times the median: a number that stands out
USUAL = Decimal("0.75")  # of the rows have it: what differs from that stands out
FEW = 4  # rows in which nothing can be usual
DOMAIN = re.compile(r"(?:@|://)([\w.-]+)\s*$|://([\w.-]+)")


def reasons(
    line: Line, columns: Sequence[Column], lines: Sequence[Line], shared: Sequence[Tag]
) -> Iterator[str]:
    for column in columns:
        if column.numeric:
            yield from _far_off(line, column)
        else:
            yield from _odd(line, column, lines)
    for tag in line.tags:
        if tag.loud and tag not in shared:
            yield tag.text


def _far_off(line: Line, column: Column) -> Iterator[str]:
    middle = median(column.numbers.values())
    times = column.numbers[line.id] / middle if middle > 0 else Decimal(0)
    if times >= FAR:
        yield f"{times:.1f} times the median"


def _odd(line: Line, column: Column, lines: Sequence[Line]) -> Iterator[str]:
    """A value unlike the usual one, a value twice where all others are different, and
    an address in another domain."""
    texts = [text_of(one, column.path) for one in lines]
    mine, label = text_of(line, column.path), column.plain
    if _is_rare(mine, texts):
        yield f"{label} is not the usual one"
    elif _is_double(mine, texts):
        yield f"{label} stands here twice"
    elif _is_rare(_domain(mine), [_domain(text) for text in texts]):
        yield f"{label} has another domain"


def _is_rare(mine: str, all_: Sequence[str]) -> bool:
    usual, count = Counter(all_).most_common(1)[0]
    return len(all_) >= FEW and mine != usual and count >= USUAL * len(all_)


def _is_double(mine: str, all_: Sequence[str]) -> bool:
    different = len(set(all_))
    return len(all_) >= FEW and all_.count(mine) > 1 and different >= USUAL * len(all_)


def _domain(text: str) -> str:
    found = DOMAIN.search(text)
    return (found[1] or found[2] or "").lower() if found else ""

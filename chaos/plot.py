"""Numbers as places on a drawing. One unit is one pixel of a page 960 wide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, LEFT, RIGHT = 960, 56, 12
BUCKETS = 120  # at most, over the whole run
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800)
TICKS = 8


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Across:
    """Seconds from left to right."""

    seconds: float

    def x(self, at: float) -> float:
        inside = WIDTH - LEFT - RIGHT
        return round(LEFT + inside * min(max(at, 0), self.seconds) / self.seconds, 1)

    @property
    def ticks(self) -> list[Tick]:
        step = next((s for s in STEPS if self.seconds / s <= TICKS), STEPS[-1])
        found = range(0, int(self.seconds) + 1, step)
        return [Tick(self.x(at), _clock(at, step)) for at in found]


def _clock(at: int, step: int) -> str:
    return f"{at // 60} min" if step >= 60 else f"{at} s"


@dataclass(frozen=True, slots=True)
class Up:
    """Values from a base line to a top."""

    most: float
    top: float
    base: float

    def y(self, value: float) -> float:
        share = min(value, self.most) / self.most
        return round(self.base - (self.base - self.top) * share, 1)

    @property
    def ticks(self) -> list[Tick]:
        step = nice(self.most / 4)
        count = int(self.most / step + 1e-9)
        return [Tick(self.y(step * n), f"{step * n:g}") for n in range(count + 1)]


def nice(value: float) -> float:
    """The next of 1, 2, 5, 10, ... that is no smaller."""
    if value <= 0:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(value))
    return next(scale * n for n in (1, 2, 5, 10) if scale * n >= value * 0.999)


def rates(times: Sequence[float], seconds: float) -> tuple[float, list[float]]:
    """Seconds of a bucket, and how many a second fell into each."""
    width = max(1.0, nice(seconds / BUCKETS))
    counts = [0] * (int(seconds / width) + 1)
    for at in times:
        if 0 <= at <= seconds:
            counts[int(at / width)] += 1
    return width, [count / width for count in counts]


def line(values: Sequence[float], width: float, across: Across, up: Up) -> str:
    """The path of a line through the middles of the buckets."""
    places = (
        f"{across.x((n + 0.5) * width)},{up.y(value)}" for n, value in enumerate(values)
    )
    return "M" + " L".join(places)


def area(values: Sequence[float], width: float, across: Across, up: Up) -> str:
    """The same, closed at the base."""
    last = across.x((len(values) - 0.5) * width)
    first = across.x(0.5 * width)
    way = line(values, width, across, up)
    return f"{way} L{last},{up.base} L{first},{up.base} Z"

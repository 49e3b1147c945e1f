"""The plot of the last hours: what arrived, what was decided, and what expired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WIDTH, HEIGHT, TOP, LEFT = 640, 120, 10, 28
KINDS = ("arrived", "decided", "expired")
BAR_SHARE = 0.28  # of an hour's width


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar, in the plot's units."""

    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class HourLabel:
    x: float
    text: str


@dataclass(frozen=True, slots=True)
class HourPlot:
    """Bars by hour, and the same numbers as rows for those who read a table."""

    bars: list[Bar]
    labels: list[HourLabel]
    rows: list[tuple[str, int, int, int]]
    most: int

    @property
    def sentence(self) -> str:
        """The plot in words."""
        arrived = sum(row[1] for row in self.rows)
        decided = sum(row[2] for row in self.rows)
        expired = sum(row[3] for row in self.rows)
        tail = f" and {expired} expired" if expired else ", none expired"
        hours = len(self.rows)
        return f"In {hours} hours {arrived} arrived, {decided} were decided{tail}."


def build_plot(
    counts: Mapping[tuple[int, str], int], first_hour: int, hours: int
) -> HourPlot:
    """Build the plot of `hours` hours, the first of which is `first_hour` o'clock."""
    most = max(counts.values(), default=0)
    step = (WIDTH - LEFT) / hours
    bars, labels, rows = [], [], []
    for hour in range(hours):
        name = f"{(first_hour + hour) % 24}:00"
        numbers = [counts.get((hour, kind), 0) for kind in KINDS]
        arrived, decided, expired = numbers
        rows.append((name, arrived, decided, expired))
        left = LEFT + hour * step
        labels.append(HourLabel(round(left, 1), name))
        for place, (kind, n) in enumerate(zip(KINDS, numbers, strict=True)):
            height = (HEIGHT - TOP) * n / most if most else 0
            bars.append(
                Bar(
                    kind,
                    round(left + place * step * BAR_SHARE, 1),
                    round(HEIGHT - height, 1),
                    round(step * BAR_SHARE * 0.9, 1),
                    round(height, 1),
                )
            )
    return HourPlot([bar for bar in bars if bar.height], labels, rows, most)

"""The options of a run and its output: a line a round, and one table at the end."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from .load import percentile

FULL_SECONDS = 2.0  # a shorter run takes a part of the numbers that the goals name
COLUMNS = {"goal": 28, "must": 22, "measured": 34, "floor of the same run": 26, "n": 22}
# The goals by number, in the order of the table.
GOALS = {
    "G1": "round trip",
    "G2": "written per action",
    "G3": "approve -> executed",
    "G4": "HTTP propose",
    "G5": "propose -> n new on the page",
    "G6": "queue view among 1,000,000",
    "G7": "whole GET among 1,000,000",
    "G8": "expiry",
    "G9": "log",
    "G10": "32 at once",
    "G11": "decided -> the waiting agent knows",
    "G12": "propose, decide, outcome over HTTP",
    "H": "each role's home among 1,000,000",
}


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller chose. `seconds` is the length of one measurement."""

    rounds: int
    seconds: float
    only: frozenset[str]
    keep: bool = False  # in docs/proof.md, what held
    profile: bool = False  # of an action, in place of the goals
    peers: bool = False  # measured in the same run

    def scale(self, count: int, *, least: int = 1) -> int:
        """The part of a number that a run of `seconds` takes: all of it from
        FULL_SECONDS on."""
        part = min(self.seconds / FULL_SECONDS, 1.0)
        return max(round(count * part), least)


@dataclass(frozen=True, slots=True)
class GoalResult:
    """One row of the table: a figure of a goal beside its bar.

    `goal` begins with the goal's number. `held` is None for a figure without a bar, and
    for one that was not measured. `floor` is what stands beside the figure in the same
    run. `rates` are actions a second by the number of clients.
    """

    goal: str
    measured: str
    bar: str
    held: bool | None
    basis: str  # how many, and of what
    floor: str = ""
    rates: Mapping[int, float] = field(default_factory=dict)

    @property
    def word(self) -> str:
        return {True: "held", False: "short", None: "-"}[self.held]

    @property
    def number(self) -> str:
        """The goal's number: `G1`."""
        return self.goal.partition(" ")[0]

    def __str__(self) -> str:
        beside = f" ({self.floor})" if self.floor else ""
        return (
            f"{self.goal}: {self.measured}{beside}; bar {self.bar}: {self.word};"
            f" {self.basis}"
        )


def format_table(results: Sequence[GoalResult], numbers: Iterable[str]) -> str:
    """One row a figure: goal, must, measured, the floor, n and whether it held. A goal
    of these numbers without a result has a row that says so."""
    measured = {row.number for row in results}
    missing = [_build_missing_row(row) for row in numbers if row not in measured]
    order = {number: place for place, number in enumerate(GOALS)}
    rows = sorted([*results, *missing], key=lambda row: order.get(row.number, 99))
    heads = _format_cells([*COLUMNS, "bar"])
    rule = "-" * (sum(COLUMNS.values()) + 2 * len(COLUMNS) + 5)
    return "\n".join(
        [*heads, rule, *(line for row in rows for line in _format_row(row))]
    )


def _build_missing_row(number: str) -> GoalResult:
    title = f"{number} {GOALS.get(number, '')}".strip()
    return GoalResult(title, "not measured in this run", "", None, "")


def _format_row(row: GoalResult) -> Iterator[str]:
    basis = row.basis.removeprefix("n = ")
    yield from _format_cells(
        [row.goal, row.bar, row.measured, row.floor, basis, row.word]
    )


def _format_cells(cells: Sequence[str]) -> list[str]:
    """The lines of a row, each cell broken at its column's width."""
    widths = [*COLUMNS.values(), 5]
    broken = [
        textwrap.wrap(cell, width) or [""]
        for cell, width in zip(cells, widths, strict=True)
    ]
    return [
        "  ".join(
            (lines[at] if at < len(lines) else "").ljust(width)
            for lines, width in zip(broken, widths, strict=True)
        ).rstrip()
        for at in range(max(map(len, broken)))
    ]


@dataclass
class LoadWatch:
    """The machine's load before each measurement and at the end. A run on a busy
    machine says little."""

    seen: list[float] = field(default_factory=list)

    def look(self) -> float:
        """The average of the last minute."""
        self.seen.append(os.getloadavg()[0])
        return self.seen[-1]

    def __str__(self) -> str:
        return (
            f"load {self.seen[0]:.1f} at the start, {self.seen[-1]:.1f} at the end,"
            f" at most {max(self.seen):.1f} (average of a minute, this run included,"
            f" {os.cpu_count()} cores)"
        )


def print_text(text: str) -> None:
    """Print at once, so that the run is seen to work."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def format_ratio(values: Sequence[float]) -> str:
    """The median over rounds, and how far the rounds lay apart."""
    return f"{median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def join_values(values: Iterable[object]) -> str:
    return " / ".join(str(value) for value in values)


def format_clients(count: int) -> str:
    return f"{count} client{'s' if count > 1 else ''}"


def format_ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def format_times(times: Sequence[float]) -> str:
    """The median and the 99th percentile of a round."""
    return ", ".join(f"p{p} {format_ms(percentile(times, p))}" for p in (50, 99))


def build_latency_results(
    goal: str,
    rounds: Sequence[Sequence[float]],
    *,
    p50: float,
    p99: float,
    under: str,
) -> tuple[GoalResult, ...]:
    """Both percentiles of a goal, each with a bar in seconds that the median over the
    rounds holds; `under` says what was going on meanwhile."""
    basis = f"n = {sum(map(len, rounds))}, {len(rounds)} rounds, {under}"
    return tuple(
        _build_percentile_result(f"{goal}, p{percent}", rounds, percent, bar, basis)
        for percent, bar in ((50, p50), (99, p99))
    )


def _build_percentile_result(
    goal: str, rounds: Sequence[Sequence[float]], percent: int, bar: float, basis: str
) -> GoalResult:
    times = [percentile(lap, percent) for lap in rounds]
    middle = median(times)
    return GoalResult(
        goal,
        f"{format_ms(middle)} ({format_ms(min(times))}-{format_ms(max(times))})",
        f"<= {format_ms(bar)}",
        middle <= bar,
        basis,
    )

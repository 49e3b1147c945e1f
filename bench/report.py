"""The options of a run and its output: a line a round, and a line a goal at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from .load import percentile


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller chose. `seconds` is the length of one measurement."""

    rounds: int
    seconds: float
    only: frozenset[str]
    keep: bool = False  # in docs/proof.md, what held
    profile: bool = False  # of an action, in place of the goals


@dataclass(frozen=True, slots=True)
class GoalResult:
    """One goal's outcome, beside its bar in speed.md."""

    goal: str
    measured: str
    bar: str
    held: bool
    basis: str  # how many, and of what

    def __str__(self) -> str:
        word = "held" if self.held else "short"
        return f"{self.goal}: {self.measured}; bar {self.bar}: {word}; {self.basis}"


def print_text(text: str) -> None:
    """Print at once, so that the run is seen to work."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def format_ratio(values: Sequence[float]) -> str:
    """The median over rounds, and how far the rounds lay apart."""
    return f"{median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def join_values(values: Iterable[object]) -> str:
    return " / ".join(str(value) for value in values)


def format_ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def format_times(found: Sequence[float]) -> str:
    """The median and the 99th percentile of a round."""
    return ", ".join(f"p{p} {format_ms(percentile(found, p))}" for p in (50, 99))


def build_latency_result(
    goal: str,
    rounds: Sequence[Sequence[float]],
    *,
    p50: float,
    p99: float,
    under: str,
) -> GoalResult:
    """A goal of two bars in seconds, each held by the median over the rounds; `under`
    says what was going on meanwhile."""
    usual, slow = (median([percentile(one, p) for one in rounds]) for p in (50, 99))
    return GoalResult(
        goal,
        f"p50 {format_ms(usual)}, p99 {format_ms(slow)}, {under}",
        f"p50 <= {format_ms(p50)}, p99 <= {format_ms(p99)}",
        usual <= p50 and slow <= p99,
        f"n = {sum(map(len, rounds))}, {len(rounds)} rounds",
    )

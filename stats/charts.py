"""What a plot shows: one sentence, one table, and panels that the desk draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import TypeAlias

from .measures import Measure
from .readings import MetricFilters, Rate, Readings

POLICY_LINK = "policies:policies"  # the URL name; administrators write a version there


class Unit(StrEnum):
    """How values are written on an axis."""

    SHARE = "share"  # 0 to 1, as per cent
    SECONDS = "seconds"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class Point:
    """A value and how many it was computed from; None without any."""

    value: float | None
    total: int


@dataclass(frozen=True, slots=True)
class Line:
    """One value a day. `few`: points of fewer than 20 are drawn hollow."""

    label: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class LinePanel:
    """Lines over the days of the period, or over other `places`."""

    places: Sequence[str]
    lines: Sequence[Line]
    unit: Unit
    title: str = ""
    goal: float | None = None
    steps: bool = False  # a level that holds until the next place

    @property
    def goal_label(self) -> str:
        return _format_goal(self.goal, self.unit)


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of parts, in the order of the panel's legend."""

    label: str
    parts: Sequence[int]


@dataclass(frozen=True, slots=True)
class BarPanel:
    """Counts as horizontal bars. `whole`: each bar is drawn as long as the others."""

    legend: Sequence[str]
    bars: Sequence[Bar]
    title: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Dot:
    """A rate with its 95 % interval."""

    label: str
    rate: Rate


@dataclass(frozen=True, slots=True)
class DotPanel:
    """Rates as dots; `band` is the expected range, `goal` a limit."""

    dots: Sequence[Dot]
    title: str = ""
    band: tuple[float, float] | None = None
    goal: float | None = None

    @property
    def band_label(self) -> str:
        if self.band is None:
            return ""
        low, high = self.band
        return f"expected: {low * 100:g} to {high * 100:g} %"

    @property
    def goal_label(self) -> str:
        return _format_goal(self.goal, Unit.SHARE)


Panel: TypeAlias = LinePanel | BarPanel | DotPanel
Cell: TypeAlias = str | int


@dataclass(frozen=True, slots=True)
class Chart:
    """A plot for one filter. Cells with an address are in `links`: row, then URL."""

    sentence: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    panels: Sequence[Panel] = ()
    link_label: str = ""
    link: str = ""  # the URL name of a page where one acts on it


class Group(StrEnum):
    """The pages that the plots are shown on."""

    OUTCOMES = "outcomes"
    TIMES = "times"
    ATTENTION = "attention"
    EFFECTS = "effects"


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot: where it stands, its definition, its measures and how it is built.

    `definition` is shown on the page and is in docs/metrics.md. `sliced` measures are
    also read per tool and risk level, `by_risk` ones also per risk level and day.
    `filtered`: whether a tool and a risk level apply to it. `contributors`: it says
    how people work, so only supervisors see it while fewer than three people
    contribute, whom this one of its measures counts; `contribution` is what they did.
    """

    slug: str
    title: str
    group: Group
    place: int
    definition: str
    measures: Sequence[Measure]
    build: Callable[[Readings], Chart]
    sliced: Sequence[Measure] = ()
    by_risk: Sequence[Measure] = ()
    filtered: bool = True
    contributors: Measure | None = None
    contribution: str = "decided"


def format_share(share: float | None) -> str:
    """`12 %`; a rate that is not zero is never written as `0 %`."""
    if share is None:
        return "none"
    if 0 < share < 0.01:
        return "under 1 %"
    if 0.99 < share < 1:
        return "over 99 %"
    return f"{share * 100:.0f} %"


def format_rate(rate: Rate) -> str:
    """`12 % (6 of 50)`, with `few` for fewer than 20."""
    if not rate.total:
        return "none"
    few = ", few" if rate.few else ""
    return f"{format_share(rate.share)} ({rate.count:,} of {rate.total:,}{few})"


def format_seconds(seconds: float | None) -> str:
    """`45 s`, `12 min`, `1 h 30 min`, `2 d 3 h`."""
    if seconds is None:
        return "none"
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def _format_goal(goal: float | None, unit: Unit) -> str:
    if goal is None:
        return ""
    return f"goal {goal * 100:g} %" if unit is Unit.SHARE else f"goal {goal:g} s"


def format_day(day: date) -> str:
    """`24 Nov`."""
    return f"{day.day} {day:%b}"


def format_period(filters: MetricFilters) -> str:
    """`26 Oct to 24 Nov`."""
    return f"{format_day(filters.first)} to {format_day(filters.last)}"


def list_places(filters: MetricFilters) -> list[str]:
    """The days of the period, as the places of a line."""
    return [format_day(day) for day in filters.days]

"""How a run is shown: columns on the terminal, and var/chaos/report.html.

The page is one file that needs nothing from anywhere: its charts are drawn here. One
unit of a chart is one pixel of a page 960 wide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.template import Context, Engine

from .figures import Figures
from .options import FAULT_KINDS

WIDTH, LEFT, RIGHT = 960, 56, 12
BUCKETS = 120  # at most, over the whole run
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800)
TICKS = 8


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The axis of a chart from left to right, in seconds."""

    seconds: float

    def x(self, at: float) -> float:
        inside = WIDTH - LEFT - RIGHT
        return round(LEFT + inside * min(max(at, 0), self.seconds) / self.seconds, 1)

    @property
    def ticks(self) -> list[Tick]:
        step = next((s for s in STEPS if self.seconds / s <= TICKS), STEPS[-1])
        return [
            Tick(self.x(at), f"{at // 60} min" if step >= 60 else f"{at} s")
            for at in range(0, int(self.seconds) + 1, step)
        ]


@dataclass(frozen=True, slots=True)
class ValueAxis:
    """The axis of a chart from its base line to its top."""

    most: float
    top: float
    base: float

    def y(self, value: float) -> float:
        share = min(value, self.most) / self.most
        return round(self.base - (self.base - self.top) * share, 1)

    @property
    def ticks(self) -> list[Tick]:
        step = round_up(self.most / 4)
        count = int(self.most / step + 1e-9)
        return [Tick(self.y(step * n), f"{step * n:g}") for n in range(count + 1)]


def round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, ... that is no smaller."""
    if value <= 0:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(value))
    return next(scale * n for n in (1, 2, 5, 10) if scale * n >= value * 0.999)


def count_rates(times: Sequence[float], seconds: float) -> tuple[float, list[float]]:
    """Seconds of a bucket, and how many a second fell into each."""
    width = max(1.0, round_up(seconds / BUCKETS))
    counts = [0] * (int(seconds / width) + 1)
    for at in times:
        if 0 <= at <= seconds:
            counts[int(at / width)] += 1
    return width, [count / width for count in counts]


def draw_line(
    values: Sequence[float], width: float, across: TimeAxis, up: ValueAxis
) -> str:
    """The path of a line through the middles of the buckets."""
    places = (
        f"{across.x((n + 0.5) * width)},{up.y(value)}" for n, value in enumerate(values)
    )
    return "M" + " L".join(places)


def draw_area(
    values: Sequence[float], width: float, across: TimeAxis, up: ValueAxis
) -> str:
    """The same, closed at the base."""
    last = across.x((len(values) - 0.5) * width)
    first = across.x(0.5 * width)
    way = draw_line(values, width, across, up)
    return f"{way} L{last},{up.base} L{first},{up.base} Z"


WHAT = {"execution": "executions", "call": "calls of the web", "timer": "timers"}


def format_table(figures: Figures) -> str:
    """The figures and claims in columns, for the terminal."""
    parts = (_size, _counts, _recovered, _post, _verdict)
    return "\n".join(line for part in parts for line in ("", *part(figures)))


def _size(figures: Figures) -> Iterator[str]:
    yield f"{figures.requests:>8,}  requests in {figures.loaded:.0f} s, quiet after"
    yield f"{'':>8}  {figures.seconds:.0f} s; {figures.effects:,} effects, "
    yield f"{'':>8}  {figures.records:,} log records"
    yield f"{'':>8}  {figures.cluster}"


def _counts(figures: Figures) -> Iterator[str]:
    for kind, count in figures.kinds.items():
        yield f"{count:>8}  {FAULT_KINDS[kind][1]}"
    yield ""
    for name, count in figures.outcomes.items():
        yield f"{count:>8}  {name}"


def _recovered(figures: Figures) -> Iterator[str]:
    yield f"{'n':>8}  {'p50':>7}  {'p99':>7}  {'most':>7}  recovered"
    for what, row in figures.recoveries.items():
        times = "  ".join(f"{row[name]:>5.1f} s" for name in ("p50", "p99", "most"))
        yield f"{row['n']:>8}  {times}  {WHAT[what]}"
    if figures.slow:
        yield ""
        yield f"beyond {figures.bound_s} s:"
        yield from (f"    {line}" for line in figures.slow)


def _post(figures: Figures) -> Iterator[str]:
    for about, counts in figures.post.items():
        listed = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        yield f"{'':>8}  {about}: {listed}"
    yield ""
    yield f"{figures.given_up:>8}  that could be looked up were given up, no try left"
    belied = "answers of people belied by a late effect, with an alarm"
    yield f"{figures.belied:>8}  {belied}"
    yield f"{figures.impatient:>8,}  times an agent's patience ended first"


def _verdict(figures: Figures) -> Iterator[str]:
    for claim in figures.claims:
        bound = f"{len(claim.failures)} of {claim.n:,}, {claim.bound}"
        yield f"{'ok' if not claim.failures else 'BROKEN':>8}  {claim.text}: {bound}"
    for text, failures in figures.violations.items():
        yield ""
        yield f"{text}:"
        yield from (f"    {failure}" for failure in failures)
    for what, count in figures.left.items():
        yield f"{count:>8,}  still to come: {what}"
    yield ""
    yield f"    {'HELD' if figures.held else 'BROKEN'}   again: {figures.command}"


HERE = Path(__file__).parent
LANE = 22.0  # height of a row of marks
FLOW = 150.0  # height of the curves
TALL = 190.0  # of the recoveries
SHORT_NAMES = {
    "worker": "worker",
    "child": "child",
    "web": "web",
    "postgres": "PG",
    "valkey": "Valkey",
    "flush": "emptied",
    "pause": "frozen",
    "point": "point",
    "cut": "cut off",
    "outage": "no net",
}
ORDER = (
    "succeeded",
    "rejected",
    "expired",
    "withdrawn",
    "refused",
    "failed",
    "unknown",
)


def write_page(figures: Figures, file: Path) -> None:
    engine = Engine(dirs=[str(HERE)], autoescape=True)
    page = engine.get_template("report.html").render(Context(build_context(figures)))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page)


def build_context(figures: Figures) -> dict[str, Any]:
    across = TimeAxis(max(figures.seconds, 1.0))
    return {
        "figures": figures,
        "claims": [(claim, f"{claim.n:,}") for claim in figures.claims],
        "timeline": _timeline(figures, across),
        "recovery": _recovery(figures, across),
        "outcomes": _outcomes(figures),
        "kinds": [
            {"name": FAULT_KINDS[kind][1], "kind": kind, "n": count}
            for kind, count in figures.kinds.items()
        ],
        "total": sum(figures.kinds.values()),
        "recoveries": [
            {"name": WHAT[what], "what": what, **row}
            for what, row in figures.recoveries.items()
        ],
        "n": {
            name: f"{getattr(figures, name):,}"
            for name in ("requests", "effects", "records", "steps")
        },
        "when": figures.at.replace("T", " ").removesuffix("+00:00"),
        "services": [
            (_describe_call(call), f"{count:,}")
            for call, count in figures.services.items()
        ],
        "classes": sorted(
            (way, _spell_out(end), f"{count:,}")
            for way, counts in figures.classes.items()
            for end, count in counts.items()
        ),
        "post": [
            (about, name, f"{count:,}")
            for about, counts in figures.post.items()
            for name, count in counts.items()
        ],
        "ladder": figures.ladder.items(),
    }


def _describe_call(call: str) -> str:
    """`do late` and `look found`, in words."""
    what, _, answer = call.partition(" ")
    return f"{'Asked' if what == 'do' else 'Looked up'}: {answer}"


def _spell_out(end: str) -> str:
    return end.replace("1 effects", "one effect").replace("0 effects", "no effect")


def _timeline(figures: Figures, across: TimeAxis) -> dict[str, Any]:
    width, ended = count_rates(figures.ended, figures.seconds)
    _, asked = count_rates(figures.asked, figures.seconds)
    up = ValueAxis(round_up(max([*ended, *asked, 0.1])), 12.0, 12.0 + FLOW)
    lanes = [
        {
            "kind": kind,
            "name": SHORT_NAMES[kind],
            "y": up.base + 34 + LANE * place,
            "marks": [
                {
                    "x": across.x(fault["at"]),
                    "width": max(across.x(fault["until"]) - across.x(fault["at"]), 3.0),
                    "title": (
                        f"{fault['at']:.0f} s: {FAULT_KINDS[kind][1]},"
                        f" {fault['target']}"
                    ),
                }
                for fault in figures.faults
                if fault["kind"] == kind
            ],
        }
        for place, kind in enumerate(figures.kinds)
    ]
    return {
        "up": up,
        "across": across,
        "lanes": lanes,
        "bucket": width,
        "ended": draw_area(ended, width, across, up),
        "asked": draw_line(asked, width, across, up),
        "last": across.x(figures.loaded),
        "foot": up.base + 34 + LANE * len(figures.kinds) - 10,
        "height": up.base + 34 + LANE * len(figures.kinds) + 18,
        "right": WIDTH - RIGHT,
    }


def _recovery(figures: Figures, across: TimeAxis) -> dict[str, Any]:
    most = max([row["seconds"] for row in figures.recovered] + [figures.bound_s * 1.15])
    up = ValueAxis(round_up(most / 4) * 4, 12.0, 12.0 + TALL)
    bars = [
        {
            "x": across.x(row["at"]),
            "y": up.y(max(row["seconds"], 0.05)),
            "height": max(up.base - up.y(max(row["seconds"], 0.05)), 1.0),
            "what": row["what"],
            "title": f"{row['seconds']:.1f} s after {FAULT_KINDS[row['kind']][1]}",
        }
        for row in figures.recovered
    ]
    return {
        "up": up,
        "across": across,
        "bars": bars,
        "bound": up.y(figures.bound_s),
        "height": up.base + 26,
        "right": WIDTH - RIGHT,
    }


def _outcomes(figures: Figures) -> list[dict[str, Any]]:
    most = max(figures.outcomes.values(), default=1)
    names = sorted(
        figures.outcomes,
        key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER),
    )
    return [
        {
            "name": name,
            "n": f"{figures.outcomes[name]:,}",
            "share": round(100 * figures.outcomes[name] / most, 1),
        }
        for name in names
    ]

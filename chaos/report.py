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
        found = range(0, int(self.seconds) + 1, step)
        return [Tick(self.x(at), _clock(at, step)) for at in found]


def _clock(at: int, step: int) -> str:
    return f"{at // 60} min" if step >= 60 else f"{at} s"


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


def format_table(made: Figures) -> str:
    """The figures and claims in columns, for the terminal."""
    parts = (_size, _counts, _recovered, _post, _verdict)
    return "\n".join(line for part in parts for line in ("", *part(made)))


def _size(made: Figures) -> Iterator[str]:
    yield f"{made.requests:>8,}  requests in {made.loaded:.0f} s, quiet after"
    yield f"{'':>8}  {made.seconds:.0f} s; {made.effects:,} effects, "
    yield f"{'':>8}  {made.records:,} log records"
    yield f"{'':>8}  {made.cluster}"


def _counts(made: Figures) -> Iterator[str]:
    for kind, count in made.kinds.items():
        yield f"{count:>8}  {FAULT_KINDS[kind][1]}"
    yield ""
    for name, count in made.outcomes.items():
        yield f"{count:>8}  {name}"


def _recovered(made: Figures) -> Iterator[str]:
    yield f"{'n':>8}  {'p50':>7}  {'p99':>7}  {'most':>7}  recovered"
    for what, one in made.recoveries.items():
        times = "  ".join(f"{one[name]:>5.1f} s" for name in ("p50", "p99", "most"))
        yield f"{one['n']:>8}  {times}  {WHAT[what]}"
    if made.slow:
        yield ""
        yield f"beyond {made.bound_s} s:"
        yield from (f"    {line}" for line in made.slow)


def _post(made: Figures) -> Iterator[str]:
    for about, counts in made.post.items():
        said = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        yield f"{'':>8}  {about}: {said}"
    yield ""
    yield f"{made.given_up:>8}  that could be looked up were given up, no try left"
    yield f"{made.belied:>8}  answers of people belied by a late effect, with an alarm"
    yield f"{made.impatient:>8,}  times an agent's patience ended first"


def _verdict(made: Figures) -> Iterator[str]:
    for claim in made.claims:
        bound = f"{claim.failures} of {claim.n:,}, {claim.bound}"
        yield f"{'ok' if not claim.failures else 'BROKEN':>8}  {claim.text}: {bound}"
    for name, found in made.violations.items():
        yield ""
        yield f"{name}:"
        yield from (f"    {line}" for line in found)
    for what, count in made.left.items():
        yield f"{count:>8,}  still to come: {what}"
    yield ""
    yield f"    {'HELD' if made.held else 'BROKEN'}   again: {made.command}"


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


def write_page(made: Figures, file: Path) -> None:
    engine = Engine(dirs=[str(HERE)], autoescape=True)
    page = engine.get_template("report.html").render(Context(build_context(made)))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page)


def build_context(made: Figures) -> dict[str, Any]:
    across = TimeAxis(max(made.seconds, 1.0))
    return {
        "made": made,
        "claims": [
            {
                "text": one.text,
                "failures": one.failures,
                "n": f"{one.n:,}",
                "bound": one.bound,
            }
            for one in made.claims
        ],
        "timeline": _timeline(made, across),
        "recovery": _recovery(made, across),
        "outcomes": _outcomes(made),
        "kinds": [
            {"name": FAULT_KINDS[kind][1], "kind": kind, "n": count}
            for kind, count in made.kinds.items()
        ],
        "total": sum(made.kinds.values()),
        "recoveries": [
            {"name": WHAT[what], "what": what, **one}
            for what, one in made.recoveries.items()
        ],
        "n": {
            name: f"{getattr(made, name):,}"
            for name in ("requests", "effects", "records", "steps")
        },
        "when": made.at.replace("T", " ").removesuffix("+00:00"),
        "services": [
            (_said(said), f"{count:,}") for said, count in made.services.items()
        ],
        "classes": sorted(
            (way, _plural(said), f"{count:,}")
            for way, counts in made.classes.items()
            for said, count in counts.items()
        ),
        "post": [
            (about, name, f"{count:,}")
            for about, counts in made.post.items()
            for name, count in counts.items()
        ],
        "ladder": made.ladder.items(),
    }


def _said(said: str) -> str:
    """`do late` and `look found`, in words."""
    what, _, answer = said.partition(" ")
    return f"{'Asked' if what == 'do' else 'Looked up'}: {answer}"


def _plural(said: str) -> str:
    return said.replace("1 effects", "one effect").replace("0 effects", "no effect")


def _timeline(made: Figures, across: TimeAxis) -> dict[str, Any]:
    width, ended = count_rates(made.ended, made.seconds)
    _, asked = count_rates(made.asked, made.seconds)
    up = ValueAxis(round_up(max([*ended, *asked, 0.1])), 12.0, 12.0 + FLOW)
    lanes = [
        {
            "kind": kind,
            "name": SHORT_NAMES[kind],
            "y": up.base + 34 + LANE * place,
            "marks": [
                {
                    "x": across.x(one["at"]),
                    "width": max(across.x(one["until"]) - across.x(one["at"]), 3.0),
                    "said": (
                        f"{one['at']:.0f} s: {FAULT_KINDS[kind][1]}, {one['target']}"
                    ),
                }
                for one in made.faults
                if one["kind"] == kind
            ],
        }
        for place, kind in enumerate(made.kinds)
    ]
    return {
        "up": up,
        "across": across,
        "lanes": lanes,
        "bucket": width,
        "ended": draw_area(ended, width, across, up),
        "asked": draw_line(asked, width, across, up),
        "last": across.x(made.loaded),
        "foot": up.base + 34 + LANE * len(made.kinds) - 10,
        "height": up.base + 34 + LANE * len(made.kinds) + 18,
        "right": WIDTH - RIGHT,
    }


def _recovery(made: Figures, across: TimeAxis) -> dict[str, Any]:
    most = max([one["seconds"] for one in made.recovered] + [made.bound_s * 1.15])
    up = ValueAxis(round_up(most / 4) * 4, 12.0, 12.0 + TALL)
    bars = [
        {
            "x": across.x(one["at"]),
            "y": up.y(max(one["seconds"], 0.05)),
            "height": max(up.base - up.y(max(one["seconds"], 0.05)), 1.0),
            "what": one["what"],
            "said": f"{one['seconds']:.1f} s after {FAULT_KINDS[one['kind']][1]}",
        }
        for one in made.recovered
    ]
    return {
        "up": up,
        "across": across,
        "bars": bars,
        "bound": up.y(made.bound_s),
        "height": up.base + 26,
        "right": WIDTH - RIGHT,
    }


def _outcomes(made: Figures) -> list[dict[str, Any]]:
    most = max(made.outcomes.values(), default=1)
    names = sorted(
        made.outcomes,
        key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER),
    )
    return [
        {
            "name": name,
            "n": f"{made.outcomes[name]:,}",
            "share": round(100 * made.outcomes[name] / most, 1),
        }
        for name in names
    ]

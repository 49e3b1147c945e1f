"""var/chaos/report.html: one file, drawn here, that needs nothing from anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.template import Context, Engine

from . import plot
from .fault import KINDS
from .figures import Figures
from .plot import Across, Up
from .table import WHAT

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


def write(made: Figures, file: Path) -> None:
    engine = Engine(dirs=[str(HERE)], autoescape=True)
    page = engine.get_template("report.html").render(Context(context(made)))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page)


def context(made: Figures) -> dict[str, Any]:
    across = Across(max(made.seconds, 1.0))
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
            {"name": KINDS[kind][1], "kind": kind, "n": count}
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


def _timeline(made: Figures, across: Across) -> dict[str, Any]:
    width, ended = plot.rates(made.ended, made.seconds)
    _, asked = plot.rates(made.asked, made.seconds)
    up = Up(plot.nice(max([*ended, *asked, 0.1])), 12.0, 12.0 + FLOW)
    lanes = [
        {
            "kind": kind,
            "name": SHORT_NAMES[kind],
            "y": up.base + 34 + LANE * place,
            "marks": [
                {
                    "x": across.x(one["at"]),
                    "width": max(across.x(one["until"]) - across.x(one["at"]), 3.0),
                    "said": f"{one['at']:.0f} s: {KINDS[kind][1]}, {one['target']}",
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
        "ended": plot.area(ended, width, across, up),
        "asked": plot.line(asked, width, across, up),
        "last": across.x(made.loaded),
        "foot": up.base + 34 + LANE * len(made.kinds) - 10,
        "height": up.base + 34 + LANE * len(made.kinds) + 18,
        "right": plot.WIDTH - plot.RIGHT,
    }


def _recovery(made: Figures, across: Across) -> dict[str, Any]:
    most = max([one["seconds"] for one in made.recovered] + [made.bound_s * 1.15])
    up = Up(plot.nice(most / 4) * 4, 12.0, 12.0 + TALL)
    bars = [
        {
            "x": across.x(one["at"]),
            "y": up.y(max(one["seconds"], 0.05)),
            "height": max(up.base - up.y(max(one["seconds"], 0.05)), 1.0),
            "what": one["what"],
            "said": f"{one['seconds']:.1f} s after {KINDS[one['kind']][1]}",
        }
        for one in made.recovered
    ]
    return {
        "up": up,
        "across": across,
        "bars": bars,
        "bound": up.y(made.bound_s),
        "height": up.base + 26,
        "right": plot.WIDTH - plot.RIGHT,
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

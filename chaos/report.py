"""var/chaos/report.html: one file, drawn here, that needs nothing from anywhere.

What a run comes to, as plain data: for the table, the page and report.json.

Numbers as places on a drawing. One unit is one pixel of a page 960 wide.

What stands on the terminal at the end.

The figures of a run that is over: what it did, what was found of it, what must
hold.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.db.models import Max
from django.template import Context, Engine

from journal.models import LogRecord
from reviews.models import Execution

from . import history, recovery_times
from .check_effects import Audit
from .cluster import Stage
from .fault import KINDS
from .options import LADDER, LEASE_S, SWEEP_S, Options
from .recovery_times import Recovery
from .run import OPEN
from .run_result import Ran
from .services import CLASSES, Ledger

FEW = 3  # trials that bound nothing


@dataclass(frozen=True)
class Claim:
    """One sentence that must hold, on how many trials, and what that bounds."""

    text: str
    n: int
    failures: int
    instead: str = ""  # of a bound, where some are allowed

    @property
    def bound(self) -> str:
        """No failure in n trials: at most 3/n of all, at 95 % confidence."""
        if self.failures:
            return "broken"
        if self.instead and self.n:
            return self.instead
        if self.n <= FEW:
            return "too few to say" if self.n else "nothing tried"
        return f"at most {300 / self.n:.3f} %"


@dataclass
class Figures:
    """Times in seconds since the first request; `at` of the start is in UTC."""

    at: str
    command: str
    seed: int
    short: bool
    stage: str  # what ran where
    seconds: float  # until all was quiet
    loaded: float  # until the last fault
    requests: int
    proposals: int
    effects: int
    records: int
    steps: int
    claims: list[Claim]
    faults: list[dict[str, Any]]
    kinds: dict[str, int]
    outcomes: dict[str, int]
    classes: dict[str, dict[str, int]]
    recoveries: dict[str, dict[str, Any]]
    recovered: list[dict[str, Any]]
    slow: list[str]  # executions beyond the bound, step by step
    asked: list[float]
    ended: list[float]
    violations: dict[str, list[str]]
    stale: dict[str, int]
    restarts: dict[str, int]
    services: dict[str, int]
    counts: dict[str, int]
    given_up: int  # of keyed and queryable effects, and a person was asked
    belied: int  # answers of people that a sleeper's effect belied, with an alarm
    left: dict[str, int]  # what was still to come when the run was ended
    troubles: list[str]  # the first, of agents whose patience ended before an answer
    impatient: int = 0  # how many in all
    post: dict[str, dict[str, int]] = field(default_factory=dict)
    ladder: dict[str, int] = field(default_factory=lambda: dict(LADDER))

    @property
    def bound_s(self) -> int:
        return LEASE_S + SWEEP_S

    @property
    def held(self) -> bool:
        return not any(claim.failures for claim in self.claims)

    def as_json(self) -> str:
        said = asdict(self) | {"held": self.held, "bound_s": self.bound_s}
        return json.dumps(said, indent=1)


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


WHAT = {"execution": "executions", "call": "calls of the web", "timer": "timers"}


def table(made: Figures) -> str:
    """All that matters, in columns."""
    parts = (_size, _counts, _recovered, _post, _verdict)
    return "\n".join(line for part in parts for line in ("", *part(made)))


def _size(made: Figures) -> Iterator[str]:
    yield f"{made.requests:>8,}  requests in {made.loaded:.0f} s, quiet after"
    yield f"{'':>8}  {made.seconds:.0f} s; {made.effects:,} effects, "
    yield f"{'':>8}  {made.records:,} log records"
    yield f"{'':>8}  {made.stage}"


def _counts(made: Figures) -> Iterator[str]:
    for kind, count in made.kinds.items():
        yield f"{count:>8}  {KINDS[kind][1]}"
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
    width, ended = rates(made.ended, made.seconds)
    _, asked = rates(made.asked, made.seconds)
    up = Up(nice(max([*ended, *asked, 0.1])), 12.0, 12.0 + FLOW)
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
        "ended": area(ended, width, across, up),
        "asked": line(asked, width, across, up),
        "last": across.x(made.loaded),
        "foot": up.base + 34 + LANE * len(made.kinds) - 10,
        "height": up.base + 34 + LANE * len(made.kinds) + 18,
        "right": WIDTH - RIGHT,
    }


def _recovery(made: Figures, across: Across) -> dict[str, Any]:
    most = max([one["seconds"] for one in made.recovered] + [made.bound_s * 1.15])
    up = Up(nice(most / 4) * 4, 12.0, 12.0 + TALL)
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


EACH = "each was asked for"
SHOWN = 40  # of what is wrong, each
REFUSED = "stale_fence"  # in a worker's log: what a late one wanted to write
SLEEPS = {"pause", "point"}
TERMINAL = {
    *history.ENDS,
    "request.rejected",
    "request.expired",
    "request.withdrawn",
    "proposal.blocked",
}


def figures(
    stage: Stage, options: Options, ran: Ran, found: Audit, ledger: Ledger
) -> Figures:
    """Of a run that has been audited."""
    recovered = recovery_times.recoveries(ran, stage.traces)
    stale = sum(stage.log(slot.name).count(REFUSED) for slot in stage.workers)
    late = [one for one in ran.arsenal.strikes if one.kind in SLEEPS and one.slept]
    made = Figures(
        at=datetime.fromtimestamp(ran.began, UTC).isoformat(timespec="seconds"),
        command=options.command,
        seed=options.seed,
        short=options.short,
        stage=stage.told,
        seconds=ran.ended - ran.began,
        loaded=ran.loaded - ran.began,
        requests=options.requests,
        proposals=found.proposals,
        effects=found.effects,
        records=found.log.records,
        steps=sum(found.log.steps.values()),
        claims=[],
        faults=[
            {
                "kind": one.kind,
                "at": one.at - ran.began,
                "until": one.until - ran.began,
                "target": one.target or one.slot,
            }
            for one in ran.arsenal.strikes
        ],
        kinds=_kinds(ran),
        outcomes=dict(found.outcomes.most_common()),
        classes={name: dict(counts) for name, counts in found.by_class.items()},
        recoveries={
            what: recovery_times.summary(recovered, what)
            for what in ("execution", "call", "timer")
        },
        recovered=[_told(one, ran.began) for one in recovered],
        slow=recovery_times.slow(recovered, LEASE_S + SWEEP_S, ran.began),
        asked=_asked(ran.began),
        ended=_ended(ran.began),
        violations={k: v[:SHOWN] for k, v in found.violations.items() if v},
        stale={
            "pauses": len(late),
            "refused": stale,
            "accepted": len(found.log.stale_written),
        },
        restarts=ran.restarts,
        services=ledger.calls(),
        counts=dict(ran.notebook.counts),
        given_up=found.given_up,
        belied=found.belied,
        left=ran.left,
        troubles=ran.notebook.troubles[:SHOWN],
        impatient=len(ran.notebook.troubles),
        post=found.post.numbers,
    )
    made.claims = _claims(made, found)
    return made


def _claims(made: Figures, found: Audit) -> list[Claim]:
    taken = Execution.objects.aggregate(most=Max("fence"))["most"] or 0
    times = [one for one in made.recovered if one["what"] == "execution"]
    slow = sum(one["seconds"] > made.bound_s for one in times)
    allowed = len(times) // 100  # what lies beyond the 99th of a hundred
    stale = made.stale["refused"] + made.stale["accepted"]
    claims = [
        Claim("requests lost, or without an end", made.requests, len(found.lost)),
        Claim("proposals that nobody was told of", made.requests, len(found.unwanted)),
        *(_doubled(found, way) for way in sorted({*CLASSES.values()})),
        Claim(
            "effects without an approval for these bytes",
            made.effects,
            len(found.unauthorised),
        ),
        Claim("steps that no edge allows", made.steps, len(found.log.illegal)),
        Claim("gaps in the log", made.records, found.log.gaps),
        Claim("promises of the outbox not kept", made.proposals, len(found.undone)),
        Claim(
            f"writes under an old fence accepted (newest fence {taken})",
            stale,
            made.stale["accepted"],
        ),
        *(Claim(*one) for one in found.ends.claims),
        *(Claim(*one) for one in found.post.claims),
        Claim(
            "kinds of work that did not come to rest", len(OPEN), len(made.left), EACH
        ),
    ]
    # A few minutes on a busy machine say how it was, not whether it holds.
    if made.short:
        return claims
    within = f"recoveries over lease + sweep = {made.bound_s} s, beyond one in 100"
    said = f"{slow} took longer, {allowed} may"
    return [*claims, Claim(within, len(times), max(slow - allowed, 0), said)]


def _doubled(found: Audit, way: str) -> Claim:
    """What one class bounds says nothing of another."""
    executions = found.by_class.get(way, Counter()).total()
    return Claim(f"effects doubled, {way} tools", executions, found.doubled_by[way])


def _kinds(ran: Ran) -> dict[str, int]:
    counted = Counter(strike.kind for strike in ran.arsenal.strikes)
    return {kind: counted[kind] for kind in ran.arsenal.kinds}


def _told(one: Recovery, began: float) -> dict[str, Any]:
    return {
        "what": one.span.what,
        "at": one.span.ended - began,
        "seconds": one.seconds,
        "kind": one.kind,
    }


def _asked(began: float) -> list[float]:
    kinds = ("proposal.submitted", "proposal.blocked")
    return _times(LogRecord.objects.filter(kind__in=kinds), began)


def _ended(began: float) -> list[float]:
    return _times(LogRecord.objects.filter(kind__in=TERMINAL), began)


def _times(rows: Any, began: float) -> list[float]:
    found = rows.order_by("at").values_list("at", flat=True)
    return [round(at.timestamp() - began, 2) for at in found]

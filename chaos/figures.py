"""What a run comes to: its figures, and the claims that must hold.

The figures are plain data: for the terminal, the page and report.json.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db.models import Max

from journal.models import LogRecord
from reviews.models import Execution

from . import recovery_times
from .cluster import Cluster
from .effect_checker import EffectFindings
from .history import ENDS, RunResult
from .options import LADDER, LEASE_S, SWEEP_S, Options
from .recovery_times import Recovery
from .run import PENDING
from .services import CLASSES, count_answers

FEW = 3  # trials that bound nothing


@dataclass(frozen=True)
class Claim:
    """Something that must not happen, in how many trials it did, and its bound."""

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
    cluster: str  # what ran where
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


EACH = "each was asked for"
SHOWN = 40  # of what is wrong, each
REFUSED = "stale_fence"  # in a worker's log: what a late one wanted to write
SLEEPS = {"pause", "point"}
TERMINAL = {
    *ENDS,
    "request.rejected",
    "request.expired",
    "request.withdrawn",
    "proposal.blocked",
}


def compile_figures(
    cluster: Cluster,
    options: Options,
    result: RunResult,
    found: EffectFindings,
) -> Figures:
    """Compile the figures of a run that has been checked."""
    recovered = recovery_times.list_recoveries(result, cluster.traces)
    stale = sum(cluster.log(slot.name).count(REFUSED) for slot in cluster.workers)
    late = [one for one in result.faults if one.kind in SLEEPS and one.slept]
    made = Figures(
        at=datetime.fromtimestamp(result.began, UTC).isoformat(timespec="seconds"),
        command=options.command,
        seed=options.seed,
        short=options.short,
        cluster=cluster.description,
        seconds=result.ended - result.began,
        loaded=result.loaded - result.began,
        requests=options.requests,
        proposals=found.proposals,
        effects=found.effects,
        records=found.log.records,
        steps=sum(found.log.steps.values()),
        claims=[],
        faults=[
            {
                "kind": one.kind,
                "at": one.at - result.began,
                "until": one.until - result.began,
                "target": one.target or one.slot,
            }
            for one in result.faults
        ],
        kinds=_kinds(result),
        outcomes=dict(found.outcomes.most_common()),
        classes={name: dict(counts) for name, counts in found.by_class.items()},
        recoveries={
            what: recovery_times.summarise_recoveries(recovered, what)
            for what in ("execution", "call", "timer")
        },
        recovered=[_told(one, result.began) for one in recovered],
        slow=recovery_times.describe_slow(recovered, LEASE_S + SWEEP_S, result.began),
        asked=_asked(result.began),
        ended=_ended(result.began),
        violations={k: v[:SHOWN] for k, v in found.violations.items() if v},
        stale={
            "pauses": len(late),
            "refused": stale,
            "accepted": len(found.log.stale_written),
        },
        restarts=result.restarts,
        services=count_answers(cluster.ledger),
        counts=dict(result.history.counts),
        given_up=found.given_up,
        belied=found.belied,
        left=result.left,
        troubles=result.history.troubles[:SHOWN],
        impatient=len(result.history.troubles),
        post=found.post.numbers,
    )
    made.claims = _claims(made, found)
    return made


def _claims(made: Figures, found: EffectFindings) -> list[Claim]:
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
            "kinds of work that did not come to rest",
            len(PENDING),
            len(made.left),
            EACH,
        ),
    ]
    # A few minutes on a busy machine say how it was, not whether it holds.
    if made.short:
        return claims
    within = f"recoveries over lease + sweep = {made.bound_s} s, beyond one in 100"
    said = f"{slow} took longer, {allowed} may"
    return [*claims, Claim(within, len(times), max(slow - allowed, 0), said)]


def _doubled(found: EffectFindings, way: str) -> Claim:
    """A claim of its own for each class of tools: one bounds nothing of another."""
    executions = found.by_class.get(way, Counter()).total()
    return Claim(f"effects doubled, {way} tools", executions, found.doubled_by[way])


def _kinds(result: RunResult) -> dict[str, int]:
    counted = Counter(fault.kind for fault in result.faults)
    return {kind: counted[kind] for kind in result.kinds}


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

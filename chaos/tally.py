"""The figures of a run that is over: what it did, what was found of it, what must
hold."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from django.db.models import Max

from journal.models import LogRecord
from reviews.models import Execution

from . import history, recovery_times
from .calm import OPEN
from .check_effects import Audit
from .cluster import Stage
from .figures import Claim, Figures
from .ledger import Ledger
from .options import LEASE_S, SWEEP_S, Options
from .recovery_times import Recovery
from .run_result import Ran
from .services import CLASSES

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

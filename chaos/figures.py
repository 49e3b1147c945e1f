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
from .claims import Claim
from .cluster import Cluster
from .delivery_checker import DeliveryFindings, MailFindings, count_post
from .effect_checker import EffectFindings, EndFindings
from .history import ENDS, RunResult
from .log_checker import LogFindings
from .options import LADDER, LEASE_S, SWEEP_S, Options
from .run import PENDING
from .services import count_answers


@dataclass
class RunFindings:
    """What all checkers came to."""

    effects: EffectFindings
    ends: EndFindings
    log: LogFindings
    webhooks: DeliveryFindings
    mails: MailFindings

    @property
    def claims(self) -> list[Claim]:
        effects = [*self.effects.claims, *self.effects.doubled.values()]
        others = (self.log, self.ends, self.webhooks, self.mails)
        return effects + [claim for part in others for claim in part.claims]


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
        return not self.violations

    @property
    def violations(self) -> dict[str, list[str]]:
        """Where each claim was broken, the first times."""
        return {c.text: c.failures[:SHOWN] for c in self.claims if c.failures}

    def as_json(self) -> str:
        claims = [{**asdict(c), "failures": len(c.failures)} for c in self.claims]
        changes = {
            "claims": claims,
            "violations": self.violations,
            "held": self.held,
            "bound_s": self.bound_s,
        }
        return json.dumps(asdict(self) | changes, indent=1)


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
    cluster: Cluster, options: Options, result: RunResult, findings: RunFindings
) -> Figures:
    """Compile the figures of a run that has been checked."""
    effects, log, began = findings.effects, findings.log, result.began
    recovered = recovery_times.list_recoveries(result, cluster.traces)
    refused = sum(cluster.log(slot.name).count(REFUSED) for slot in cluster.workers)
    accepted = len(log.stale.failures)
    slept = [fault for fault in result.faults if fault.kind in SLEEPS and fault.slept]
    kinds = Counter(fault.kind for fault in result.faults)
    figures = Figures(
        at=datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds"),
        command=options.command,
        seed=options.seed,
        short=options.short,
        cluster=cluster.description,
        seconds=result.ended - began,
        loaded=result.loaded - began,
        requests=options.requests,
        proposals=effects.proposals,
        effects=effects.effects,
        records=log.gaps.n,
        steps=log.illegal.n,
        claims=findings.claims,
        faults=[
            {
                "kind": fault.kind,
                "at": fault.at - began,
                "until": fault.until - began,
                "target": fault.target or fault.slot,
            }
            for fault in result.faults
        ],
        kinds={kind: kinds[kind] for kind in result.kinds},
        outcomes=dict(effects.outcomes.most_common()),
        classes={name: dict(counts) for name, counts in effects.by_class.items()},
        recoveries={
            what: recovery_times.summarise_recoveries(recovered, what)
            for what in ("execution", "call", "timer")
        },
        recovered=[
            {
                "what": recovery.span.what,
                "at": recovery.span.ended - began,
                "seconds": recovery.seconds,
                "kind": recovery.kind,
            }
            for recovery in recovered
        ],
        slow=recovery_times.describe_slow(recovered, LEASE_S + SWEEP_S, began),
        asked=_list_times({"proposal.submitted", "proposal.blocked"}, began),
        ended=_list_times(TERMINAL, began),
        stale={"pauses": len(slept), "refused": refused, "accepted": accepted},
        restarts=result.restarts,
        services=count_answers(cluster.ledger),
        counts=dict(result.history.counts),
        given_up=effects.given_up,
        belied=effects.belied,
        left=result.left,
        troubles=result.history.troubles[:SHOWN],
        impatient=len(result.history.troubles),
        post=count_post(findings.webhooks, findings.mails),
    )
    log.stale.n = refused + accepted
    newest = Execution.objects.aggregate(most=Max("fence"))["most"] or 0
    log.stale.text += f" (newest fence {newest})"
    figures.claims += _build_claims(figures)
    return figures


def _build_claims(figures: Figures) -> list[Claim]:
    """What must hold of the run as a whole."""
    resting = Claim(
        "kinds of work that did not come to rest",
        len(PENDING),
        list(figures.left),
        "each was asked for",
    )
    # A few minutes on a busy machine say how it was, not whether it holds.
    if figures.short:
        return [resting]
    bound_s = figures.bound_s
    times = [row for row in figures.recovered if row["what"] == "execution"]
    slow = [f"{row['seconds']:.1f} s" for row in times if row["seconds"] > bound_s]
    allowed = len(times) // 100  # what lies beyond the 99th of a hundred
    recovering = Claim(
        f"recoveries over lease + sweep = {bound_s} s, beyond one in 100",
        len(times),
        slow[allowed:],
        f"{len(slow)} took longer, {allowed} may",
    )
    return [resting, recovering]


def _list_times(kinds: set[str], began: float) -> list[float]:
    """When the log has records of these kinds."""
    rows = LogRecord.objects.filter(kind__in=kinds).order_by("at")
    times = rows.values_list("at", flat=True)
    return [round(at.timestamp() - began, 2) for at in times]

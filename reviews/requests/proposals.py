"""Submitting, revising, superseding and withdrawing a proposal.

These are steps: the operations of `agents.proposals` open the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from journal import clock, failpoints, log, outbox, writes
from journal.errors import (
    AlreadyDecided,
    Conflict,
    NotFound,
    RationaleMissing,
    RequestExpired,
    RequestWithdrawn,
    TooLittleTime,
)
from journal.operations import operation
from policies.choices import Tier
from policies.tools import load_description
from reviews import locks, transitions
from reviews.choices import OPEN, RETRACTED, UNFINISHED, ExecutionStatus, RequestStatus
from reviews.evidence import files
from reviews.governance.ruling import (
    KnownSums,
    ProposedAction,
    Ruling,
    build_policy_refusal,
    govern,
    read_claims,
    record_observations,
)
from reviews.grants import grants, uncertain
from reviews.models import ApprovalRequest, Proposal, Revision
from reviews.redaction.redactor import Redactor
from reviews.standing_grants.uses import StandingUse, take_use
from reviews.stops import incidents, stops
from reviews.stops.gate_state import GateState

from . import repeats, versions
from .revisions import Narrative, add_revision, build_redactor, replace_revision

MIN_SECONDS = 60  # a shorter time-out is refused, never treated as NOTIFY


@dataclass(frozen=True, slots=True)
class ProposalOrigin:
    """Where a proposal comes from, who may not decide it, and how to handle it."""

    barred: Sequence[str] = ()
    kept_out: Sequence[str] = ()
    on_behalf_of: Mapping[str, Any] = field(default_factory=dict)
    parent: str = ""
    supersedes: str = ""
    group: str = ""
    priority: str = "normal"
    source: str = ""
    again: bool = False  # one more effect is meant, so it joins no open request
    expires_in: int | None = None
    has_listener: bool = False  # the agent has an endpoint for webhook events
    repeats: str = ""  # the rejected proposal of the same action in its run
    traceparent: str = ""  # W3C Trace Context: the agent's span that caused it


def submit_proposal(
    action: ProposedAction,
    narrative: Narrative,
    origin: ProposalOrigin,
    *,
    state: GateState,
    by: log.Actor | None = None,
    sums: KnownSums | None = None,
    asks: bool = False,
    revision_key: int = 0,
) -> Proposal:
    """Store a proposal, evaluate the policy, and open a request or issue a grant.

    `state` and `sums` were read under the thread's lock; without `sums`, `govern` locks
    and reads them. `revision_key` is the revision's primary key if the caller has drawn
    it. `by` is the person who proposes in the agent's place. `asks` requires an
    approval even where the policy does not. A blocked proposal is stored and nothing
    more happens; so is one that gets the rejection of an earlier proposal.

    A step of the agents' propose operation; the caller holds the thread's lock. Raises
    AgentStopped, InvalidArgs, RationaleMissing, TooLittleTime, NotFound or Conflict.
    """
    if by is None:
        stops.check_run_may_propose(state.mode, action.agent, action.thread)
    actor, now = by or log.Actor("agent", action.agent), state.now
    check_time_to_answer(origin.expires_in)
    if origin.supersedes:
        _supersede_proposal(origin.supersedes, action.agent, actor, now)
    ruling = govern(action, now=now, policy=state.policy, sums=sums)
    check_rationale(ruling, narrative)
    redactor = build_redactor(action, ruling)
    proposal = _build_proposal(action, origin, ruling, redactor, now)
    use = None
    if not (asks or by or proposal.repeats):
        use = take_use(proposal, action, ruling)
    ruling = use.ruling if use else ruling
    writes.insert_rows([proposal])
    revision = add_revision(
        proposal,
        1,
        action,
        narrative,
        ruling,
        actor,
        now,
        redactor=redactor,
        key=revision_key,
    )
    _log_submitted(proposal, revision, ruling, actor, now, use, again=origin.again)
    if proposal.repeats:
        _cache_missing_request(proposal)
        repeats.pause_rejected_runs([proposal], now)
    elif ruling.tier is not Tier.BLOCK:
        asks = asks or ruling.tier in {Tier.APPROVE, Tier.ESCALATE}
        record_observations(ruling, now=now, asks=asks)
        _open_or_grant(
            proposal, revision, ruling, origin, actor, now, asks=asks, use=use
        )
    return proposal


def _build_proposal(
    action: ProposedAction,
    origin: ProposalOrigin,
    ruling: Ruling,
    redactor: Redactor,
    now: datetime,
) -> Proposal:
    return Proposal(
        id=action.proposal,
        agent=action.agent,
        thread=action.thread,
        tool_name=action.tool,
        barred=list(origin.barred),
        kept_out=list(origin.kept_out),
        on_behalf_of=_redact_party(redactor, origin.on_behalf_of),
        parent=origin.parent,
        supersedes=origin.supersedes,
        group=origin.group,
        priority=origin.priority,
        source=origin.source,
        blocked_by=ruling.blocked_by,
        repeats="" if ruling.blocked_by else origin.repeats,
        has_listener=origin.has_listener,
        traceparent=origin.traceparent,
        created_at=now,
    )


def _redact_party(redactor: Redactor, party: Mapping[str, Any]) -> dict[str, Any]:
    """The party for whom the agent acts; the names of its properties are the agent's
    own."""
    known = {name: member for name, member in party.items() if name != "properties"}
    redacted = redactor.members(known)
    if properties := party.get("properties"):
        redacted["properties"] = redactor.foreign(properties)
    return redacted


def check_time_to_answer(expires_in: int | None) -> None:
    if expires_in is not None and expires_in < MIN_SECONDS:
        raise TooLittleTime(
            errors=[
                {"path": "expires_in", "message": f"at least {MIN_SECONDS} seconds"}
            ]
        )


def check_rationale(ruling: Ruling, narrative: Narrative) -> None:
    if ruling.evaluation.requires_rationale and not narrative.rationale.strip():
        raise RationaleMissing(
            errors=[{"path": "rationale", "message": "this tool requires one"}]
        )


def _open_or_grant(
    proposal: Proposal,
    revision: Revision,
    ruling: Ruling,
    origin: ProposalOrigin,
    actor: log.Actor,
    now: datetime,
    *,
    asks: bool,
    use: StandingUse | None,
) -> None:
    if asks:
        versions.open_request(
            proposal,
            revision,
            ruling,
            actor=actor,
            now=now,
            expires_in=origin.expires_in,
        )
        return
    _cache_missing_request(proposal)
    by = log.Actor("system", f"policy:{revision.policy_number}")
    if use is not None:
        by = log.Actor("system", f"standing_grant:{use.grant.pk}")
    tells = ruling.tier is Tier.NOTIFY
    queue = versions.load_queue(ruling) if tells else None
    grants.issue_grant(
        proposal,
        revision,
        actor=by,
        now=now,
        announced_in=queue,
        standing_grant=use.grant if use else None,
    )
    if tells:
        outbox.publish("proposal.announced", subject=proposal.pk)


def _cache_missing_request(proposal: Proposal) -> None:
    """Record on the row that it has no request, so that `proposal.request` raises
    without a query."""
    Proposal._meta.get_field("request").set_cached_value(proposal, None)


def _log_submitted(
    proposal: Proposal,
    revision: Revision,
    ruling: Ruling,
    actor: log.Actor,
    now: datetime,
    use: StandingUse | None,
    *,
    again: bool,
) -> None:
    standing = {"standing_grant": use.grant.pk, "use": use.number} if use else {}
    named = files.list_hashes(revision.evidence)
    log.append(
        _find_record_kind(proposal),
        actor=actor,
        at=now,
        proposal=proposal.pk,
        agent=proposal.agent,
        thread=proposal.thread,
        revision=revision.number,
        action_hash=revision.action_hash,
        policy=revision.policy_number,
        steps=versions.build_steps(ruling.evaluation),
        data={
            "tool": proposal.tool_name,
            "tier": ruling.tier,
            "risk": ruling.evaluation.risk,
            "rules": [rule.id for rule in ruling.evaluation.rules],
            **({"repeats": proposal.repeats} if proposal.repeats else {}),
            **({"again": True} if again else {}),
            **({"files": named} if named else {}),
            **standing,
        },
    )


def _find_record_kind(proposal: Proposal) -> str:
    if proposal.blocked_by:
        return "proposal.blocked"
    return "proposal.repeated" if proposal.repeats else "proposal.submitted"


def _supersede_proposal(
    proposal_id: str, agent: str, actor: log.Actor, now: datetime
) -> None:
    request = locks.lock_request_of_proposal(proposal_id)
    # guard: own-superseded
    if request is None or request.proposal.agent != agent:
        raise NotFound("supersedes: this agent has no such pending proposal.")
    if request.status == RequestStatus.SUPERSEDED:
        successors = Proposal.objects.filter(agent=agent, supersedes=proposal_id)
        if not successors.filter(blocked_by="").exists():
            return  # the policy blocked what took its place, which now comes again
    if request.status != RequestStatus.PENDING:
        raise Conflict("supersedes: that proposal is no longer pending.")
    transitions.request.apply(
        request, "supersede", actor=actor, now=now, changes={"settled_at": now}
    )
    uncertain.release_sums([proposal_id])


def withdraw_proposal(
    proposal_id: str, *, agent: str, actor: log.Actor, now: datetime, code: str
) -> None:
    """Withdraw a proposal: end its open request, or refuse its queued execution. One
    that is withdrawn stays so. Raises NotFound, or AlreadyDecided when there is nothing
    left to withdraw. The caller holds the thread's lock, or is a sweep that holds none.
    Locks: the request."""
    proposal = Proposal.objects.filter(pk=proposal_id, agent=agent).first()
    if proposal is None:
        raise NotFound
    request = locks.lock_request_of_proposal(proposal_id)
    if request is not None and request.status in OPEN:
        transitions.request.apply(
            request,
            "withdraw",
            actor=actor,
            now=now,
            changes={"settled_at": now, "recall_until": None},
            data={"code": code},
        )
        uncertain.release_sums([proposal_id])
    elif request is not None and request.status == RequestStatus.WITHDRAWN:
        return
    elif not grants.revoke_queued(proposal, actor=actor, now=now, code=code):
        raise AlreadyDecided("There is nothing left to withdraw.")


@operation(
    locks="request",
    writes="ApprovalRequest, or Grant and Execution; Observation",
    logs="request.withdrawn, or grant.revoked and execution.refused or "
    "execution.unknown",
    after="mail, webhook, wake-up",
)
def withdraw_stopped_proposal(*, proposal_id: str, code: str) -> None:
    """Withdraw one proposal in the scope of a stop, with the system as the actor.
    Raises NotFound or AlreadyDecided."""
    now = clock.now()
    proposal = Proposal.objects.get(pk=proposal_id)
    actor = log.Actor("system", "stop")
    withdraw_proposal(
        proposal_id, agent=proposal.agent, actor=actor, now=now, code=code
    )
    failpoints.point("stop_uncommitted", proposal_id)


def mark_has_callback(proposal: Proposal) -> None:
    """Send webhook events for this proposal too. The caller holds its request's
    lock."""
    Proposal.objects.filter(pk=proposal.pk, has_listener=False).update(
        has_listener=True
    )
    proposal.has_listener = True


def mark_has_listener(agent: str) -> int:
    """Send webhook events for this agent's unfinished proposals too; return how many.
    Called when the agent gets its first endpoint. The caller is in a transaction. A
    proposal that ends at the same moment may end without an event."""
    own = Proposal.objects.filter(agent=agent)
    asked = own.filter(request__status__in=OPEN)
    again = Q(
        executions__status=ExecutionStatus.FAILED,
        executions__grant__expires_at__gt=clock.now(),
    )
    runs = own.filter(Q(executions__status__in=UNFINISHED) | again)
    both = Q(pk__in=asked.values("pk")) | Q(pk__in=runs.values("pk"))
    return Proposal.objects.filter(both, has_listener=False).update(has_listener=True)


def _lock_own_request(proposal_id: str, agent: str) -> ApprovalRequest:
    proposal = Proposal.objects.filter(pk=proposal_id, agent=agent).first()
    if proposal is None:
        raise NotFound
    request = locks.lock_request_of_proposal(proposal_id)
    if request is None:
        raise Conflict("This proposal is not pending, so it cannot be revised.")
    return request


def _check_request_open(request: ApprovalRequest, now: datetime) -> None:
    if request.status == RequestStatus.EXPIRED or (
        request.status == RequestStatus.PENDING and request.expires_at <= now
    ):
        late = max(int((now - request.expires_at).total_seconds()), 0)
        raise RequestExpired(
            f"This expired {late} seconds before your decision arrived. "
            f"{uncertain.describe_effect(request)}",
            expired_at=request.expires_at.isoformat(),
        )
    if request.status in RETRACTED:
        raise RequestWithdrawn
    if request.status not in OPEN:
        raise AlreadyDecided


def revise_proposal(
    action: ProposedAction,
    narrative: Narrative,
    *,
    state: GateState,
    expires_in: int | None = None,
    revision_key: int = 0,
) -> ApprovalRequest:
    """Replace the proposed action of an open request; all votes on it are void.

    A step of the agents' revise operation; the caller holds the thread's lock. `state`
    and `revision_key` as for `submit_proposal`. Raises NotFound, Conflict,
    AlreadyDecided, RequestExpired, RequestWithdrawn, AgentStopped, InvalidArgs,
    RationaleMissing, TooLittleTime, or PolicyViolation when the new action is blocked,
    which leaves the old one in place. Locks: the request.
    """
    stops.check_may_propose(state.mode)
    now = state.now
    check_time_to_answer(expires_in)
    request = _lock_own_request(action.proposal, action.agent)
    incidents.catch_up_deadline(request, now, always=True)
    _check_request_open(request, now)
    before = request.sealed.revision
    action = replace(
        action, described=load_description(before.known_tool), **read_claims(before)
    )
    ruling = govern(action, now=now)  # by the policy of now: it waited for the request
    check_rationale(ruling, narrative)
    if ruling.tier is Tier.BLOCK:
        raise build_policy_refusal(ruling)
    actor = log.Actor("agent", action.agent)
    request.expires_at = _compute_new_deadline(request, ruling, expires_in, now)
    request.reminded_at = None
    replace_revision(
        request,
        action,
        narrative,
        ruling,
        actor,
        now,
        event="revise",
        revision_key=revision_key,
    )
    return request


def _compute_new_deadline(
    request: ApprovalRequest, ruling: Ruling, expires_in: int | None, now: datetime
) -> datetime:
    """The deadline of a new version: its whole time-out, up to the request's maximum.
    Raises TooLittleTime when too little time would be left for an answer."""
    seconds = versions.compute_seconds_to_answer(ruling.evaluation, expires_in)
    begins = incidents.compute_clock_start(request, now)
    expires_at = min(begins + timedelta(seconds=seconds), request.expires_at_most)
    if expires_at < begins + timedelta(seconds=MIN_SECONDS):
        raise TooLittleTime(
            "The request cannot stay open any longer. Propose it again."
        )
    return expires_at

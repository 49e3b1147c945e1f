"""A proposal's own life: submitted, revised, withdrawn, superseded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from journal import canonical, clock, log, outbox
from journal.errors import (
    Conflict,
    Decided,
    Expired,
    NotFound,
    Policy,
    RationaleMissing,
    TooLittleTime,
    Withdrawn,
)
from policies import active, facts
from policies.choices import Tier

from . import grants, locks, redacting, requests, stops, transitions
from .choices import OPEN, RequestStatus
from .governance import Action, Ruling, govern, observe
from .models import ApprovalRequest, Proposal, Revision
from .redacting import Redactor

_ARGUMENT = re.compile(r"\bargs\.([A-Za-z_]\w*)")
LEAST_SECONDS = 60  # a shorter wait is refused, never turned into NOTIFY


@dataclass(frozen=True, slots=True)
class Narrative:
    """What the agent says of its proposal: raw here, redacted before it is stored."""

    rationale: str = ""
    expected_outcome: str = ""
    reversal: str = ""
    alternatives: Sequence[Mapping[str, Any]] = ()
    evidence: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a proposal comes from and how it is to be treated."""

    barred: Sequence[str] = ()
    on_behalf_of: Mapping[str, Any] = field(default_factory=dict)
    parent: str = ""
    supersedes: str = ""
    group: str = ""
    priority: str = "normal"
    source: str = ""
    expires_in: int | None = None


def submit(
    action: Action, narrative: Narrative, origin: Origin, *, now: datetime
) -> Proposal:
    """Store the proposal, ask the policy, and do what follows from its tier.

    A step of the agents' propose operation. Raises AgentStopped, InvalidArgs,
    RationaleMissing, TooLittleTime, Conflict. Caller holds the thread's lock.
    """
    stops.check_may_propose(action.agent, action.thread, action.tool)
    actor = log.Actor("agent", action.agent)
    _check_time(origin.expires_in)
    if origin.supersedes:
        _supersede(origin.supersedes, action.agent, actor, now)
    ruling = govern(action, now=now)
    _check_rationale(ruling, narrative)
    proposal = Proposal.objects.create(
        id=action.proposal,
        agent=action.agent,
        thread=action.thread,
        tool_name=action.tool,
        barred=list(origin.barred),
        on_behalf_of=_redactor(action, ruling).members(origin.on_behalf_of),
        parent=origin.parent,
        supersedes=origin.supersedes,
        group=origin.group,
        priority=origin.priority,
        source=origin.source,
        blocked_by=ruling.blocked_by,
        created_at=now,
    )
    revision = add_revision(proposal, 1, action, narrative, ruling, actor, now)
    _log_submitted(proposal, revision, ruling, actor, now)
    if ruling.tier is not Tier.BLOCK:
        observe(ruling, now=now)
        _follow(proposal, revision, ruling, origin, actor, now)
    return proposal


def _check_time(expires_in: int | None) -> None:
    if expires_in is not None and expires_in < LEAST_SECONDS:
        raise TooLittleTime(
            errors=[
                {"path": "expires_in", "message": f"at least {LEAST_SECONDS} seconds"}
            ]
        )


def _check_rationale(ruling: Ruling, narrative: Narrative) -> None:
    if ruling.evaluation.requires_rationale and not narrative.rationale.strip():
        raise RationaleMissing(
            errors=[{"path": "rationale", "message": "this tool requires one"}]
        )


def _follow(
    proposal: Proposal,
    revision: Revision,
    ruling: Ruling,
    origin: Origin,
    actor: log.Actor,
    now: datetime,
) -> None:
    if ruling.tier in {Tier.APPROVE, Tier.ESCALATE}:
        requests.open_request(
            proposal,
            revision,
            ruling,
            actor=actor,
            now=now,
            expires_in=origin.expires_in,
        )
        return
    policy = log.Actor("system", f"policy:{revision.policy_number}")
    tells = ruling.tier is Tier.NOTIFY
    queue = requests.queue_of(ruling) if tells else None
    grants.issue(proposal, revision, actor=policy, now=now, announced_in=queue)
    if tells:
        outbox.publish("proposal.announced", subject=proposal.pk)


def add_revision(
    proposal: Proposal,
    number: int,
    action: Action,
    narrative: Narrative,
    ruling: Ruling,
    author: log.Actor,
    now: datetime,
) -> Revision:
    """Insert an immutable revision with its canonical bytes and redacted texts."""
    tool = ruling.tool
    blob = action.canonical(tool.version if tool else 0)
    redactor = _redactor(action, ruling)
    texts = redactor.members(
        {
            "rationale": narrative.rationale,
            "expected_outcome": narrative.expected_outcome,
            "reversal": narrative.reversal,
            "alternatives": list(narrative.alternatives),
        }
    )
    return Revision.objects.create(
        proposal=proposal,
        number=number,
        tool=tool,
        canonical=blob,
        action_hash=canonical.digest(blob),
        author_kind=author.kind,
        author_id=author.id,
        uncertain=action.uncertain,
        reading=action.reading.as_json() if action.reading else {},
        facts=dict(ruling.facts),
        evaluation=ruling.evaluation.as_json(),
        tier=ruling.tier,
        risk=ruling.evaluation.risk,
        amount_minor=ruling.money.minor if ruling.money else None,
        currency=ruling.money.currency if ruling.money else "",
        policy=ruling.policy,
        created_at=now,
        evidence=redactor.items(narrative.evidence),
        **texts,
    )


def _redactor(action: Action, ruling: Ruling) -> Redactor:
    return redacting.of(
        action.agent,
        action.thread,
        ruling.definition,
        action.args,
        proposal=action.proposal,
    )


def _log_submitted(
    proposal: Proposal,
    revision: Revision,
    ruling: Ruling,
    actor: log.Actor,
    now: datetime,
) -> None:
    log.append(
        "proposal.blocked" if proposal.blocked_by else "proposal.submitted",
        actor=actor,
        at=now,
        proposal=proposal.pk,
        agent=proposal.agent,
        thread=proposal.thread,
        revision=revision.number,
        action_hash=revision.action_hash,
        policy=revision.policy_number,
        steps=requests.steps_of(ruling.evaluation),
        data={
            "tool": proposal.tool_name,
            "tier": ruling.tier,
            "risk": ruling.evaluation.risk,
            "rules": [rule.id for rule in ruling.evaluation.rules],
        },
    )


def _supersede(proposal_id: str, agent: str, actor: log.Actor, now: datetime) -> None:
    """The named proposal's request ends as SUPERSEDED. Raises NotFound, Conflict."""
    request = locks.request_of(proposal_id)
    if request is None or request.proposal.agent != agent:
        raise NotFound("supersedes: no such waiting proposal of this agent.")
    if request.status != RequestStatus.PENDING:
        raise Conflict("supersedes: that proposal is no longer waiting.")
    transitions.request.apply(
        request, "supersede", actor=actor, now=now, changes={"settled_at": now}
    )
    facts.release(proposal_id)


def own_request(proposal_id: str, agent: str) -> ApprovalRequest:
    """The locked request of this agent's proposal. Raises NotFound, Conflict."""
    proposal = Proposal.objects.filter(pk=proposal_id, agent=agent).first()
    if proposal is None:
        raise NotFound
    request = locks.request_of(proposal_id)
    if request is None:
        raise Conflict("This proposal waits for nobody, so it cannot be revised.")
    return request


def check_open(request: ApprovalRequest, now: datetime) -> None:
    """Raises Decided, Expired or Withdrawn when the request is settled or overdue."""
    if request.status == RequestStatus.EXPIRED or (
        request.status == RequestStatus.PENDING and request.expires_at <= now
    ):
        late = max(int((now - request.expires_at).total_seconds()), 0)
        raise Expired(
            f"This expired {late} seconds before your decision arrived. "
            "Nothing was executed.",
            expired_at=request.expires_at.isoformat(),
        )
    if request.status in {RequestStatus.WITHDRAWN, RequestStatus.SUPERSEDED}:
        raise Withdrawn
    if request.status not in OPEN:
        raise Decided


def revise(
    action: Action,
    narrative: Narrative,
    *,
    now: datetime,
    expires_in: int | None = None,
) -> ApprovalRequest:
    """Replace what is proposed; every vote given is void.

    A step of the agents' revise operation. Raises NotFound, Decided, Expired,
    Withdrawn, AgentStopped, InvalidArgs, RationaleMissing, TooLittleTime, Policy (the
    new action is blocked: the old one stays). Caller holds the thread's lock.
    """
    stops.check_may_propose(action.agent, action.thread, action.tool)
    _check_time(expires_in)
    request = own_request(action.proposal, action.agent)
    check_open(request, now)
    ruling = govern(action, now=now)
    _check_rationale(ruling, narrative)
    if ruling.tier is Tier.BLOCK:
        raise blocked_edit(ruling)
    actor = log.Actor("agent", action.agent)
    request.expires_at = _fresh_deadline(request, ruling, expires_in, now)
    request.reminded_at = None
    replace_revision(request, action, narrative, ruling, actor, now, event="revise")
    return request


def _fresh_deadline(
    request: ApprovalRequest, ruling: Ruling, expires_in: int | None, now: datetime
) -> datetime:
    """A new version has the whole time-out of its rules, within the most that the
    first one had. Raises TooLittleTime when nobody could answer in what is left."""
    seconds = requests.seconds_to_answer(ruling.evaluation, expires_in)
    expires_at = min(now + timedelta(seconds=seconds), request.expires_at_most)
    if expires_at < now + timedelta(seconds=LEAST_SECONDS):
        raise TooLittleTime("The question may stay open no longer. Propose it anew.")
    return expires_at


def blocked_edit(ruling: Ruling) -> Policy:
    """The refusal of an edit that the policy forbids, with the rules that say so."""
    return Policy(
        errors=[
            {"path": _place_of(ruling, rule.id), "message": rule.text}
            for rule in ruling.evaluation.rules
            if rule.blocks
        ]
    )


def amount_place(ruling: Ruling) -> str:
    """The argument that says how much, else all of them."""
    found = ruling.definition.money if ruling.definition else []
    return f"args.{found[0].amount}" if found else "args"


def _place_of(ruling: Ruling, rule_id: str) -> str:
    """The argument that a rule speaks of: the first it names, else the amount that it
    sums up."""
    rules = active.compiled(ruling.policy).rules if ruling.policy else []
    condition = next((rule.when for rule in rules if rule.id == rule_id), "")
    named = _ARGUMENT.search(condition)
    if named:
        return f"args.{named[1]}"
    return amount_place(ruling) if "sum." in condition else "args"


def replace_revision(
    request: ApprovalRequest,
    action: Action,
    narrative: Narrative,
    ruling: Ruling,
    author: log.Actor,
    now: datetime,
    *,
    event: str,
    least: Tier = Tier.AUTO,
) -> Revision:
    """Revision n+1 and request version n+1, which asks for `least` at the least.
    Caller holds the request's lock."""
    proposal = request.proposal
    revision = add_revision(
        proposal, proposal.revision + 1, action, narrative, ruling, author, now
    )
    Proposal.objects.filter(pk=proposal.pk).update(revision=revision.number)
    proposal.revision = revision.number
    observe(ruling, now=now)
    escalated_by = request.sealed.escalated_by
    by_agent = author.kind == "agent"
    asked = requests.asked_again(
        request, ruling.evaluation, by_agent=by_agent, least=least
    )
    transitions.request.apply(
        request,
        event,
        actor=author,
        now=now,
        changes=_asked_anew(request, revision, ruling, asked.tier),
        policy=revision.policy_number,
        steps=asked.steps,
        data={"rules": [rule.id for rule in ruling.evaluation.rules]},
    )
    requests.seal(
        request,
        revision,
        ruling.evaluation,
        cause="revised" if event == "revise" else "modified",
        now=now,
        steps=asked.steps,
        escalated_by=escalated_by,
    )
    return revision


def _asked_anew(
    request: ApprovalRequest, revision: Revision, ruling: Ruling, tier: Tier
) -> dict[str, Any]:
    """The request row's new columns; deadline and reminder are those of the row in
    hand."""
    return {
        "version": request.version + 1,
        "action_hash": revision.action_hash,
        "tier": tier,
        "risk": ruling.evaluation.risk,
        "queue": requests.queue_of(ruling),
        "expires_at": request.expires_at,
        "reminded_at": request.reminded_at,
        "recall_until": None,
    }


def withdraw(
    proposal_id: str, *, agent: str, actor: log.Actor, now: datetime, code: str
) -> None:
    """Take a proposal back: an open request ends, an unclaimed grant is revoked.

    Raises NotFound, or Decided when there is nothing left to take back. Caller holds
    the thread's lock or is a sweep that holds none.
    """
    proposal = Proposal.objects.filter(pk=proposal_id, agent=agent).first()
    if proposal is None:
        raise NotFound
    request = locks.request_of(proposal_id)
    if request is not None and request.status in OPEN:
        transitions.request.apply(
            request,
            "withdraw",
            actor=actor,
            now=now,
            changes={"settled_at": now, "recall_until": None},
            data={"code": code},
        )
    elif not grants.revoke(proposal, actor=actor, now=now, code=code):
        raise Decided("There is nothing left to take back.")
    facts.release(proposal_id)


@transaction.atomic(durable=True)
def withdraw_stopped(*, proposal_id: str, code: str) -> None:
    """Take back one proposal of something that was stopped, as the system."""
    now = clock.now()
    proposal = Proposal.objects.get(pk=proposal_id)
    actor = log.Actor("system", "stop")
    withdraw(proposal_id, agent=proposal.agent, actor=actor, now=now, code=code)

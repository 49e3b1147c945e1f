"""An agent replaces what it proposed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from journal import log
from journal.errors import (
    Conflict,
    Decided,
    Expired,
    NotFound,
    TooLittleTime,
    Withdrawn,
)
from policies.choices import Tier

from . import freezing, inherited, locks
from .blocked import blocked_edit
from .choices import OPEN, RequestStatus
from .governance.ruling import Action, Ruling, govern
from .models import ApprovalRequest, Proposal
from .requests import versions
from .requests.proposals import LEAST_SECONDS, check_rationale, check_time
from .requests.revisions import Narrative, replace_revision
from .stops import stops


def _own_request(proposal_id: str, agent: str) -> ApprovalRequest:
    """The locked request of this agent's proposal. Raises NotFound, Conflict."""
    proposal = Proposal.objects.filter(pk=proposal_id, agent=agent).first()
    if proposal is None:
        raise NotFound
    request = locks.request_of(proposal_id)
    if request is None:
        raise Conflict("This proposal waits for nobody, so it cannot be revised.")
    return request


def _check_open(request: ApprovalRequest, now: datetime) -> None:
    """Raises Decided, Expired or Withdrawn when the request is settled or overdue."""
    if request.status == RequestStatus.EXPIRED or (
        request.status == RequestStatus.PENDING and request.expires_at <= now
    ):
        late = max(int((now - request.expires_at).total_seconds()), 0)
        raise Expired(
            f"This expired {late} seconds before your decision arrived. "
            f"{inherited.said_of(request)}",
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
    check_time(expires_in)
    request = _own_request(action.proposal, action.agent)
    freezing.catch_up(request, now, always=True)
    _check_open(request, now)
    before = request.sealed.revision.facts
    action = replace(action, resembles=bool(before.get("resembles")))
    ruling = govern(action, now=now)
    check_rationale(ruling, narrative)
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
    seconds = versions.seconds_to_answer(ruling.evaluation, expires_in)
    begins = freezing.running_from(request, now)
    expires_at = min(begins + timedelta(seconds=seconds), request.expires_at_most)
    if expires_at < begins + timedelta(seconds=LEAST_SECONDS):
        raise TooLittleTime("The question may stay open no longer. Propose it anew.")
    return expires_at

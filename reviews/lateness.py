"""What somebody is told who decides too late: what happened, when and by whom, and
that their own verdict has no effect (ux.md 3.10)."""

from __future__ import annotations

from datetime import datetime

from journal.clock import time_of_day
from journal.errors import Decided, DomainError, Expired, LeaseLapsed, Withdrawn

from . import inherited
from .choices import RequestStatus, Verdict
from .models import ApprovalRequest, Decision
from .said import Said

MINE = {
    Verdict.APPROVE: "approval",
    Verdict.REJECT: "rejection",
    Verdict.MODIFY: "change",
    Verdict.ESCALATE: "escalation",
}
THEIRS = {
    Verdict.APPROVE: "approved",
    Verdict.REJECT: "rejected",
    Verdict.MODIFY: "changed and approved",
    Verdict.ESCALATE: "escalated",
}


def check(request: ApprovalRequest, said: Said, now: datetime) -> None:
    """Raises Expired, Withdrawn, Decided or LeaseLapsed, in words for this person.
    Caller holds the request's lock."""
    status = RequestStatus(request.status)
    overdue = status is RequestStatus.PENDING and request.expires_at <= now
    if overdue or status is RequestStatus.EXPIRED:  # guard: deadline
        raise _expired(request, now)
    if status in {RequestStatus.WITHDRAWN, RequestStatus.SUPERSEDED}:
        raise _withdrawn(request)
    held = status is RequestStatus.RECALLABLE and said.verdict is not Verdict.REJECT
    if held or status in {RequestStatus.AUTHORIZED, RequestStatus.REJECTED}:
        raise _decided(request, said, now)


def _expired(request: ApprovalRequest, now: datetime) -> DomainError:
    late = max(int((now - request.expires_at).total_seconds()), 0)
    return Expired(
        f"This expired at {time_of_day(request.expires_at)}, {_seconds(late)} before "
        f"your decision arrived. {inherited.said_of(request)}",
        expired_at=request.expires_at.isoformat(),
    )


def _withdrawn(request: ApprovalRequest) -> DomainError:
    what = "This was withdrawn"
    if request.status == RequestStatus.SUPERSEDED:
        what = "A later proposal replaced this"
    return Withdrawn(
        f"{what} at {time_of_day(request.settled_at)}. There is nothing to decide. "
        "Your decision was not recorded."
    )


def _decided(request: ApprovalRequest, said: Said, now: datetime) -> DomainError:
    decision = (
        Decision.objects.filter(request=request, version=request.version)
        .select_related("reviewer")
        .order_by("-at")
        .first()
    )
    if decision is None:
        return Decided()
    who = _who(request, decision, said)
    what = THEIRS[Verdict(decision.verdict)]
    theirs = str(decision.authority.get("lease", ""))
    if said.lease and theirs and theirs != said.lease and who != "You":
        return LeaseLapsed(
            f"Your hold ended and {_small(who)} took it over: {what} at "
            f"{time_of_day(decision.at)}. Your {MINE[said.verdict]} has no effect."
        )
    ago = max(int((now - decision.at).total_seconds()), 0)
    before = "already" if who == "You" else f"{_seconds(ago)} before you"
    return Decided(
        f"{who} {what} this {before}. Your {MINE[said.verdict]} has no effect."
    )


def _who(request: ApprovalRequest, decision: Decision, said: Said) -> str:
    """By name once it is settled; until then nobody knows who answered what."""
    if decision.reviewer_id == said.person.pk:
        return "You"
    concerned = said.person.public_id in request.proposal.barred
    hidden = concerned or request.status == RequestStatus.RECALLABLE
    return "Someone else" if hidden else str(decision.reviewer)


def _small(who: str) -> str:
    return "someone else" if who == "Someone else" else who


def _seconds(count: int) -> str:
    if count >= 120:
        minutes = count // 60
        return f"{minutes} minutes"
    return f"{count} second{'' if count == 1 else 's'}"

"""The checks that every verdict must pass. An item of a batch passes the same checks as
a single decision.

A verdict that comes too late is refused with what happened, when and by whom, and the
statement that the verdict has no effect (ux.md 3.10).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from journal.clock import time_of_day
from journal.errors import (
    Conflict,
    Decided,
    DomainError,
    Expired,
    LeaseLapsed,
    Reason,
    Stale,
    Withdrawn,
    at,
)
from reviews import locks, permissions
from reviews.choices import OFFERED, ReasonCode, RequestStatus, StopMode, Verdict
from reviews.governance import readings as state_readings
from reviews.governance.readings import Readings
from reviews.grants import uncertain
from reviews.holds import rows as holds_rows
from reviews.models import (
    ApprovalRequest,
    Decision,
    Lease,
    Proposal,
    RequestVersion,
    StateReading,
)
from reviews.permissions import Known
from reviews.stops import stops
from reviews.stops.stops import Action

from .case import Case, check_step_up
from .case import filled as case_filled
from .preflight import Outside
from .submission import Said
from .votes import Vote

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
    """Check that the request is still open for this verdict; a rejection may still end
    a recall window. Raises Expired, Withdrawn, Decided or LeaseLapsed, worded for this
    person. Caller holds the request's lock."""
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
        f"your decision arrived. {uncertain.said_of(request)}",
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
    """The decider's name once the request is settled. During the recall window, and to
    a person who is barred from the proposal, the decider stays anonymous."""
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


@dataclass(frozen=True, slots=True)
class Found:
    """What the checks of one person's verdicts need, loaded once for all of them."""

    stopped: Mapping[Action, StopMode | None]
    known: Known
    leases: Mapping[str, Lease]  # locked
    readings: Readings
    filled: Mapping[str, Sequence[int]]


def look(said: Sequence[Said], requests: Mapping[str, ApprovalRequest]) -> Found:
    """Load the facts for these verdicts of one person, in a number of queries that does
    not grow with them. Locks their holds. Caller holds the locks of the requests, and
    read the person after them."""
    rows = [requests[one.request_id] for one in said]
    ids = [row.pk for row in rows]
    return Found(
        stopped=stops.in_force_over({_action(row.proposal) for row in rows}),
        known=permissions.known(said[0].person, ids),
        leases=locks.leases(ids),
        readings=state_readings.readings(
            [
                (requests[one.request_id].sealed.revision, one.reading)
                for one in said
                if one.commits
            ]
        ),
        filled=case_filled(rows),
    )


def examine(
    said: Said,
    request: ApprovalRequest,
    outside: Outside,
    found: Found,
    *,
    now: datetime,
) -> Case:
    """Check one verdict and build its decision context.

    Raises what `decide.decide_request` raises, except the page's own objection. Caller
    holds the request's lock, and loaded `found` under it.
    """
    version = request.sealed
    _check_current(said, request, found, now)
    if not outside.current:
        raise Conflict  # it became current during the wait, and no verifier was called
    role = permissions.check_can_decide(said.person, request, version, found.known)
    lease = found.leases.get(request.pk)
    holds_rows.check(lease, said.person, now, said.lease)
    reading = _check_reading(said, version, found.readings)
    _check_reason(said, version)
    if version.step_up and said.commits:  # guard: step-up
        check_step_up(said, now)
    return Case(
        said, request, version, role, now, lease, reading, found.filled[request.pk]
    )


def _check_current(
    said: Said, request: ApprovalRequest, found: Found, now: datetime
) -> None:
    check(request, said, now)
    # A stop withdraws open requests in the background. One that it has not reached yet
    # may no longer be decided either. A paused request may be.
    # guard: decide-stop
    if found.stopped[_action(request.proposal)] is StopMode.STOPPED:
        raise Withdrawn("This was stopped. Your decision was not recorded.")
    if said.is_stale(request):  # guard: seen-version
        raise Stale(current_version=request.version)


def _action(proposal: Proposal) -> Action:
    return proposal.agent, proposal.thread, proposal.tool_name


def _check_reading(
    said: Said, version: RequestVersion, found: Readings
) -> StateReading | None:
    """A verdict that lets something happen needs the current state to be the one shown.
    Returns that reading; None for other verdicts, and for an edit, whose arguments have
    a reading of their own."""
    if not said.commits:
        return None
    shown = state_readings.check(version.revision, said.reading, found)
    return None if said.verdict is Verdict.MODIFY else shown


def _check_reason(said: Said, version: RequestVersion) -> None:
    _check_fits(said)
    needed = version.requires_reason or said.verdict in {
        Verdict.REJECT,
        Verdict.ESCALATE,
    }
    if needed and not said.reason_code:
        raise Reason(errors=[at("reason_code", f"required; {_offered(said.verdict)}")])
    if said.reason_code == ReasonCode.OTHER and not said.reason.strip():
        raise Reason(errors=[at("reason", "say which")])


def _check_fits(said: Said) -> None:
    """The agent acts on the reason code, so one that contradicts the verdict would
    mislead it. Raises Reason."""
    code, verdict = said.reason_code, said.verdict
    if not code or code in OFFERED[verdict]:
        return
    known = code in set(ReasonCode)
    wrong = f"{code} does not fit {verdict}" if known else "not a known reason"
    raise Reason(
        "This reason does not fit what you decide. Nothing was recorded. Choose another"
        " reason, or another verdict.",
        errors=[at("reason_code", f"{wrong}; {_offered(verdict)}")],
    )


def _offered(verdict: Verdict) -> str:
    return f"use one of: {', '.join(OFFERED[verdict])}"


def vote(case: Case) -> Vote:
    """Build the vote: for an approval, with the step that it fills. Raises NotYours."""
    if case.said.verdict is not Verdict.APPROVE:
        return Vote(case)
    person, role = case.said.person, case.role
    place = permissions.counting_place(person, role, case.version, case.filled)
    return Vote(case, place)

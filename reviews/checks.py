"""Everything that must hold for one verdict, whoever composes the operation: one item
of a batch is checked as it would be alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from journal.errors import Conflict, NotYours, Reason, Stale, Withdrawn

from . import lateness, leases, permissions, quorum, state_readings, stops
from .cases import Case, check_step_up
from .choices import ReasonCode, StopMode, Verdict
from .models import ApprovalRequest, Proposal, RequestVersion, StateReading
from .outside import Outside
from .said import Said


def examine(
    said: Said, request: ApprovalRequest, outside: Outside, *, now: datetime
) -> Case:
    """Everything that must hold for one verdict, whoever composes the operation.

    Raises what `decide` raises. Caller holds the request's lock, and has read the
    person after it.
    """
    version = request.sealed
    _check_current(said, request, now)
    if not outside.current:
        raise Conflict  # it became current while we waited, unseen by its verifiers
    role = permissions.check_can_decide(said.person, request, version)
    lease = leases.check(request, said.person, now, said.lease)
    reading = _check_reading(said, version)
    _check_reason(said, version)
    if version.step_up and said.commits:
        check_step_up(said, now)
    return Case(said, request, version, role, now, lease, reading)


def _check_reading(said: Said, version: RequestVersion) -> StateReading | None:
    """Nothing happens on a state that moved; a refusal needs none. An edit has a
    reading of its own, made for its arguments."""
    if not said.commits:
        return None
    shown = state_readings.check(version.revision, said.reading)
    return None if said.verdict is Verdict.MODIFY else shown


def _check_current(said: Said, request: ApprovalRequest, now: datetime) -> None:
    lateness.check(request, said, now)
    _check_not_stopped(request.proposal)
    if said.is_stale(request):
        raise Stale(current_version=request.version)


def _check_not_stopped(proposal: Proposal) -> None:
    """Under a stop nothing waits: what the withdrawal has not reached yet is no
    longer to be decided either. A pause keeps it decidable."""
    mode = stops.in_force(proposal.agent, proposal.thread, proposal.tool_name)
    if mode is StopMode.STOPPED:
        raise Withdrawn("This was stopped. Your decision was not recorded.")


def _check_reason(said: Said, version: RequestVersion) -> None:
    if said.reason_code and said.reason_code not in set(ReasonCode):
        raise Reason(errors=[{"path": "reason_code", "message": "not a known reason"}])
    needed = version.requires_reason or said.verdict in {
        Verdict.REJECT,
        Verdict.ESCALATE,
    }
    if needed and not said.reason_code:
        raise Reason(errors=[{"path": "reason_code", "message": "choose one"}])
    if said.reason_code == ReasonCode.OTHER and not said.reason.strip():
        raise Reason(errors=[{"path": "reason", "message": "say which"}])


def place_of(case: Case, given: Sequence[int]) -> int:
    """The step that this approval fills. Raises NotYours."""
    revision = case.version.revision
    if permissions.above_ceiling(
        case.said.person, revision.amount_minor, revision.currency
    ):
        raise NotYours("This amount is above what you may decide.")
    step = quorum.place(case.version.steps, given, case.role)
    if step is None:
        raise NotYours("Your part is done already. Someone else must go on.")
    return step

"""Everything that must hold for one verdict, whoever composes the operation: one item
of a batch is checked as it would be alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from journal.errors import Conflict, Reason, Stale, Withdrawn, at
from reviews import lateness, locks, permissions
from reviews.choices import OFFERED, ReasonCode, StopMode, Verdict
from reviews.governance import readings as state_readings
from reviews.governance.readings import Readings
from reviews.leases import checking
from reviews.models import (
    ApprovalRequest,
    Lease,
    Proposal,
    RequestVersion,
    StateReading,
)
from reviews.permissions import Known
from reviews.said import Said
from reviews.stops import stops
from reviews.stops.stops import Action

from .case import Case, check_step_up
from .case import filled as case_filled
from .preflight import Outside
from .votes import Vote


@dataclass(frozen=True, slots=True)
class Found:
    """What the checks of one person's verdicts need to know, read once for all."""

    stopped: Mapping[Action, StopMode | None]
    known: Known
    leases: Mapping[str, Lease]  # locked
    readings: Readings
    filled: Mapping[str, Sequence[int]]


def look(said: Sequence[Said], requests: Mapping[str, ApprovalRequest]) -> Found:
    """For these verdicts of one person, in a few queries however many they are. Caller
    holds the locks of the requests, and has read the person after them."""
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
    """Everything that must hold for one verdict, whoever composes the operation.

    Raises what `decide` raises. Caller holds the request's lock, and has looked under
    it.
    """
    version = request.sealed
    _check_current(said, request, found, now)
    if not outside.current:
        raise Conflict  # it became current while we waited, unseen by its verifiers
    role = permissions.check_can_decide(said.person, request, version, found.known)
    lease = found.leases.get(request.pk)
    checking.check(lease, said.person, now, said.lease)
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
    lateness.check(request, said, now)
    # Under a stop nothing waits: what the withdrawal has not reached yet is no longer
    # to be decided either. A pause keeps it decidable.
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
    """Nothing happens on a state that moved; a refusal needs none. An edit has a
    reading of its own, made for its arguments."""
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
    """The agent acts on the code as data: one that contradicts the verdict misleads
    it. Raises Reason."""
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
    """The verdict with the step that it fills, where it is an approval. Raises
    NotYours."""
    if case.said.verdict is not Verdict.APPROVE:
        return Vote(case)
    person, role = case.said.person, case.role
    place = permissions.counting_place(person, role, case.version, case.filled)
    return Vote(case, place)

"""What people say: the four verdicts, each one guarded write under the request's lock
(gate.md section 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from journal import clock, faults, log
from journal.errors import (
    CheckMissed,
    Conflict,
    DomainError,
    InvalidArgs,
    NotFound,
    NotYours,
    Reason,
    Stale,
    VerifierRefused,
    Withdrawn,
)
from policies import facts, tools
from policies.choices import Tier
from policies.models import Person

from . import (
    lateness,
    leases,
    locks,
    permissions,
    quorum,
    readers,
    requests,
    state_readings,
    stops,
    transitions,
    verifiers,
)
from .cases import (
    Case,
    Said,
    check_step_up,
    people_of_complete_steps,
    still,
    tally,
    write,
)
from .choices import ReasonCode, RequestStatus, StopMode, Verdict
from .edits import modify
from .models import (
    ApprovalRequest,
    Proposal,
    RequestVersion,
    StateReading,
)
from .readers import Reading


@dataclass(frozen=True, slots=True)
class Outside:
    """What was found out before the transaction: look-ups and verifiers."""

    # It was open in exactly this version then: otherwise nobody was asked.
    current: bool = True
    reading: Reading | None = None
    least: Tier = Tier.AUTO  # what a verifier asked for
    raised: bool = False  # and that is more than this version asks for


def decide(said: Said) -> ApprovalRequest:
    """Record one verdict and do what follows from it.

    Raises the people's codes of api.md: NotYours, Stale, Decided, Expired, Withdrawn,
    Escalated, Held, LeaseLapsed, Precondition, Reason, Reauth, Policy, InvalidArgs,
    VerifierRefused, Conflict; and last of all the page's own objection (`too_fast`,
    `check`, `stale`). A refusal is logged in a transaction of its own, since its own
    was rolled back.
    """
    try:
        return _record(said, look_outside(said))
    except DomainError as error:
        _log_refused(said, error)
        raise


def look_outside(said: Said) -> Outside:
    """Look-ups for edited arguments and verifiers, before any lock is taken.

    Nobody is asked for somebody who may not decide this, nor about arguments that
    break the schema; what is stale is refused under the lock.
    """
    request = (
        ApprovalRequest.objects.select_related("proposal", "queue")
        .filter(pk=said.request_id)
        .first()
    )
    if request is None:
        raise NotFound
    if not said.commits:
        return Outside()
    if request.status != RequestStatus.PENDING or _is_stale(said, request):
        return Outside(current=False)
    version = request.sealed
    revision = version.revision
    definition = tools.definition(revision.known_tool)
    asked = verifiers.registered(definition, request.queue.name)
    if said.verdict is not Verdict.MODIFY and not asked:
        return Outside()
    permissions.check_can_decide(said.person, request, version)
    args: Mapping[str, Any] = revision.args
    reading = None
    if said.verdict is Verdict.MODIFY and said.args is not None:
        args = said.args
        if problems := tools.validate(revision.known_tool, args):
            raise InvalidArgs(errors=problems)
        reading = readers.read(definition, args)
    found = verifiers.verify(asked, _sealed(said, version, args), stage="decision")
    if isinstance(found, verifiers.Refusal):
        raise VerifierRefused(found.detail, verifier=found.code)
    least = found.tier if found else Tier.AUTO
    raised = least.rank > Tier(version.tier).rank
    return Outside(reading=reading, least=least, raised=raised)


def _is_stale(said: Said, request: ApprovalRequest) -> bool:
    return (said.version, said.action_hash) != (request.version, request.action_hash)


def _sealed(
    said: Said, version: RequestVersion, args: Mapping[str, Any]
) -> dict[str, Any]:
    """What a verifier sees: facts of the question, never the agent's words."""
    return {
        "request": version.request_id,
        "version": version.number,
        "seal": version.seal,
        "tool": version.revision.known_tool.name,
        "tier": version.tier,
        "risk": version.risk,
        "verdict": said.verdict.value,
        "args": dict(args),
        "action_hash": version.revision.action_hash,
    }


@transaction.atomic(durable=True)
def _record(said: Said, outside: Outside) -> ApprovalRequest:
    request = locks.approval_request(said.request_id)
    # Read anew: an authority taken away while we waited is gone.
    said = replace(said, person=Person.objects.get(pk=said.person.pk))
    case = examine(said, request, outside, now=clock.now())
    if said.verdict is Verdict.MODIFY:
        modify(case, outside.reading, least=outside.least)
    elif outside.raised:
        escalate(case, cause="verifier")
    else:
        VERDICTS[said.verdict](case)
    if said.objection is not None:
        raise said.objection  # and all of the above is rolled back
    faults.point("decided_uncommitted", request.pk)
    return request


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
    if _is_stale(said, request):
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


def _approve(case: Case) -> None:
    given = case.given()
    step = place_of(case, given)
    write(case, counts=step)
    tally(case, [*given, step])


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


def _reject(case: Case) -> None:
    write(case)
    transitions.request.apply(
        case.request,
        "reject",
        actor=case.said.actor,
        now=case.now,
        changes={"settled_at": case.now, "recall_until": None},
        guard=still(case),
        verdict=Verdict.REJECT,
    )
    facts.release(case.request.proposal_id)


def escalate(case: Case, cause: str = "escalated") -> None:
    """One supervisor more, and once more time. Steps already complete are dropped.
    Caller examined the case under the request's lock."""
    write(case)
    request, version = case.request, case.version
    given = case.given()
    steps = requests.escalated_steps(version, given)
    carried = [*version.carried, *people_of_complete_steps(request, version)]
    evaluation = requests.evaluation_of(version.revision)
    transitions.request.apply(
        request,
        "escalate",
        actor=case.said.actor,
        now=case.now,
        changes={
            "version": request.version + 1,
            "tier": Tier.ESCALATE,
            "expires_at": _extended(case, evaluation.timeout),
        },
        guard=still(case),
        steps=steps,
        verdict=case.said.verdict,
        data={"cause": cause},
    )
    escalated_by = list(version.escalated_by)
    if cause == "escalated":
        escalated_by.append(case.said.person.public_id)
    requests.seal(
        request,
        version.revision,
        evaluation,
        cause=cause,
        now=case.now,
        steps=steps,
        carried=carried,
        escalated_by=escalated_by,
    )


def _extended(case: Case, seconds: int) -> datetime:
    """The deadline moves on the first escalation only, never past the rule's most."""
    request = case.request
    if requests.was_escalated(request):
        return request.expires_at
    later = request.expires_at + timedelta(seconds=seconds)
    return min(later, request.expires_at_most)


@transaction.atomic(durable=True)
def _log_refused(said: Said, error: DomainError) -> None:
    """A verdict without effect is a log record of its own [I8, I30]."""
    request = (
        ApprovalRequest.objects.select_related("proposal")
        .filter(pk=said.request_id)
        .first()
    )
    if request is None:
        return
    log.append(
        "decision.refused",
        actor=said.actor,
        at=clock.now(),
        verdict=said.verdict,
        data={"code": error.code, "seen": said.action_hash[:80], **_asked(said, error)},
        **transitions.request.context(request),
    )


def _asked(said: Said, error: DomainError) -> dict[str, Any]:
    """Which control question was answered wrong; never the words of its answers."""
    if error.code != CheckMissed.code:
        return {}
    return {"check": said.check["question"], "answers": said.check["answers"]}


VERDICTS = {
    Verdict.APPROVE: _approve,
    Verdict.REJECT: _reject,
    Verdict.ESCALATE: escalate,
}

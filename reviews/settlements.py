"""What people and agents do with an execution: an agent redeems its own, a person
answers what could not be known, and a known failure is tried again."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any

from django.db import transaction

from journal import clock, faults, log
from journal.errors import (
    AgentStopped,
    Conflict,
    DomainError,
    GrantExpired,
    GrantSpent,
    Precondition,
    Reason,
    StaleFence,
    ToolChanged,
)
from policies import facts
from policies.models import Person

from . import (
    claims,
    executions,
    fences,
    grants,
    locks,
    permissions,
    rechecks,
    transitions,
)
from .choices import BY_PERSON, ExecutionStatus
from .claims import Claim
from .executors import Outcome
from .models import Execution
from .rechecks import No


def redeem(*, token: str, agent: str, key: str = "") -> Claim:
    """The agent takes its one-use grant to perform the effect itself. Who gives the
    same `key` again gets the same claim while it stands, if all that is checked of a
    new one still holds.

    Raises NotFound, GrantExpired, GrantSpent, AgentStopped, ToolChanged, Precondition
    (its fact `reason` says which check failed), Conflict. After a lapsed lease the same
    agent may redeem a keyed or queryable tool again.
    """
    grant = grants.find(token, agent=agent)
    execution = grant.execution
    if not execution.by_agent:
        raise Conflict("This tool is performed by the gate, not by the agent.")
    claim = claims.take(
        execution_id=execution.pk,
        actor=log.Actor("agent", agent),
        redeeming=True,
        key=key,
    )
    if claim is None:
        raise _why_not_redeemed(execution.pk)
    faults.point("redeem_taken", execution.pk)
    no = (
        rechecks.check(claim.execution, claim.definition)
        or executions.note_outside()
        or rechecks.switches(claim.execution)
    )
    if no is not None:
        _let_go(claim, no)
        raise _refusal(no)
    try:
        fences.hand_out(claim)
    except StaleFence:
        raise _why_not_redeemed(execution.pk) from None
    faults.point("redeemed", execution.pk)
    return claim


def _let_go(claim: Claim, no: No) -> None:
    """Whoever made a claim takes it back, unless it was given to a repeated call: the
    agent may be at it. A repeated call takes nothing back, for the same reason."""
    if not claim.replayed:
        with suppress(StaleFence):
            executions.give_back(claim=claim, no=no)


def _refusal(no: No) -> DomainError:
    if no.code == "stopped":
        return AgentStopped()
    if no.code == "paused":
        return Conflict("This is paused. Ask again later.")
    if no.code == "window_closed":
        return GrantExpired()
    if no.code == "tool_changed":
        return ToolChanged(no.detail)
    return Precondition(no.detail, reason=no.code)


def _why_not_redeemed(execution_id: str) -> DomainError:
    execution = Execution.objects.select_related("grant").get(pk=execution_id)
    if execution.code in {"window_closed", "stopped", "tool_changed"}:
        return _refusal(No(execution.code, execution.detail))
    no = rechecks.switches(execution)
    if execution.status == ExecutionStatus.QUEUED or (no and _lapsed(execution)):
        return _refusal(no) if no else Conflict()
    return GrantSpent()


def _lapsed(execution: Execution) -> bool:
    return execution.lease_until is not None and execution.lease_until <= clock.now()


def report(
    *,
    execution: Execution,
    fence: int,
    action_hash: str,
    outcome: Outcome,
    actor: log.Actor,
) -> Execution:
    """What an agent says became of the effect that it performed.

    Raises NotFound, StaleFence, and Conflict for the outcome of another action: what
    was said is kept all the same, as evidence that settles nothing.
    """
    said: dict[str, Any] = {
        "execution_id": execution.pk,
        "fence": fence,
        "outcome": outcome,
        "actor": actor,
    }
    if execution.grant.action_hash != action_hash:
        executions.keep_late(action_hash=action_hash, **said)
        raise Conflict("This is the outcome of another action. Nothing was recorded.")
    try:
        return executions.record(**said)
    except StaleFence:
        executions.keep_late(action_hash=action_hash, **said)
        raise


@transaction.atomic(durable=True)
def settle_unknown(
    *, execution_id: str, person: Person, happened: bool, reason: str
) -> Execution:
    """A person answers what could not be known. Raises NotYours, Reason, Conflict."""
    permissions.check(person, permissions.Permission.SETTLE_UNKNOWN)
    if not reason.strip():
        raise Reason(errors=[{"path": "reason", "message": "say how you know"}])
    execution = locks.execution(execution_id)
    permissions.check_can_settle(person, execution)
    if execution.status != ExecutionStatus.UNKNOWN:
        raise Conflict("Its outcome is known by now. Nothing was recorded.")
    now = clock.now()
    transitions.execution.apply(
        execution,
        "settle_succeeded" if happened else "settle_failed",
        actor=log.Actor("person", person.public_id),
        now=now,
        changes={"finished_at": now, "code": BY_PERSON, "ask_at": None},
        data={"execution": execution.pk, "happened": happened},
        private={"reason": reason},
    )
    if not happened:
        facts.release(execution.proposal_id)
    faults.point("settle_uncommitted", execution_id)
    return execution


@transaction.atomic(durable=True)
def retry(*, execution_id: str, person: Person) -> Execution:
    """Queue a known failure again: same grant, bytes and key, inside its window.

    Raises NotYours, GrantExpired, Conflict when it has not failed.
    """
    execution = locks.execution(execution_id)
    queue_again(execution, person, clock.now())
    faults.point("retry_uncommitted", execution_id)
    return execution


def queue_again(execution: Execution, person: Person, now: datetime) -> None:
    """The same as a step. Caller holds the execution's lock."""
    permissions.admitted_role(person, execution.grant.revision.known_tool.queue_id)
    if execution.grant.expires_at <= now:
        raise GrantExpired("The execution window is over. Ask the agent again.")
    transitions.execution.apply(
        execution,
        "retry",
        actor=log.Actor("person", person.public_id),
        now=now,
        changes={"finished_at": None, "due_at": now, "code": "", "detail": ""},
        data={"execution": execution.pk},
    )
    facts.restore(execution.proposal_id, at=execution.grant.revision.created_at)

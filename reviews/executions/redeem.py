"""Effects that the agent performs itself: the agent redeems its one-use grant and later
reports what became of the effect."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

from journal import clock, failpoints, log, writes
from journal.clock import format_time
from journal.errors import (
    AgentStopped,
    Conflict,
    DomainError,
    GrantExpired,
    GrantSpent,
    PreconditionFailed,
    StaleFence,
    ToolChanged,
    Unavailable,
)
from reviews.choices import ExecutionStatus
from reviews.grants import tokens, uncertain
from reviews.models import Execution
from reviews.tool_services import executors
from reviews.tool_services.executors import EffectOutcome

from . import claims, leases, rechecks, record, run
from .claims import Claim
from .rechecks import Refusal

NOT_DUE = "This execution cannot be retried yet. Nothing was done. Try again later."
RETRY_AFTER_S = 5
TAKEN_BACK = "This permit was revoked before the action ran. Nothing was done."
LOOK_UP_FAILED = Refusal(
    "look_up_failed",
    "The tool's service could not report the result.",
    retryable=True,
    costs_attempt=False,
)


def redeem_grant(*, token: str, agent: str, key: str = "") -> Claim:
    """Redeem a one-use grant, so that the agent performs the effect itself. A repeated
    call with the same `key` gets the same claim while it is valid, if every check of a
    new claim still passes.

    Raises NotFound, GrantExpired, GrantSpent, AgentStopped, ToolChanged,
    PreconditionFailed (its fact `reason` says which check failed), Conflict. After a
    lapsed lease the same agent may redeem a keyed or queryable tool again, if a look-up
    does not find the effect.
    """
    grant = tokens.load_grant_by_token(token, agent=agent)
    execution = grant.execution
    if not execution.by_agent:
        raise Conflict("This tool is performed by the gate, not by the agent.")
    claim = claims.claim_execution(
        execution_id=execution.pk,
        actor=log.Actor("agent", agent),
        redeeming=True,
        key=key,
    )
    if claim is None:
        raise _build_redeem_error(execution.pk)
    failpoints.point("redeem_taken", execution.pk)
    claim = _look_up_earlier(claim)
    refusal = (
        rechecks.find_refusal(claim.execution, claim.definition)
        or run.try_record_outside(claim.execution)
        or rechecks.find_final_refusal(claim.execution)
    )
    if refusal is not None:
        _release_unless_replayed(claim, refusal)
        raise _refusal_to_error(refusal)
    try:
        leases.mark_handed_out(claim)
    except StaleFence:
        raise _build_redeem_error(execution.pk) from None
    failpoints.point("redeemed", execution.pk)
    return claim


def _look_up_earlier(claim: Claim) -> Claim:
    """Ask the service whether the effect happened already, before the agent gets the
    claim. Raises GrantSpent when the execution has ended, Conflict while the service
    cannot say or when the execution is queued for another attempt."""
    # False when the first call broke off before the agent got the claim.
    given_out = claim.replayed and claim.execution.began_at is not None
    outcome = None if given_out else run.look_up_earlier_attempts(claim)
    if outcome is None or run.may_repeat_effect(claim, outcome):
        return claim
    if run.is_effect_denied(claim, outcome):
        return replace(claim, untouched=True)
    if outcome.status == "unknown":
        _release_unless_replayed(claim, LOOK_UP_FAILED)
        raise Conflict(f"{LOOK_UP_FAILED.detail} Ask again later.")
    with suppress(StaleFence):
        record.record_outcome(
            execution_id=claim.execution.pk,
            fence=claim.fence,
            outcome=outcome,
            actor=claims.EXECUTOR_ACTOR,
        )
    raise _build_redeem_error(claim.execution.pk)


def _release_unless_replayed(claim: Claim, refusal: Refusal) -> None:
    """Release the claim that this call made, unless a repeated call handed it out
    meanwhile. A repeated call releases nothing: the agent may be performing the effect.
    """
    if not claim.replayed:
        with suppress(StaleFence):
            record.release_claim(claim=claim, refusal=refusal)
    writes.insert_rows(leases.take_readings(claim.execution))


def _refusal_to_error(refusal: Refusal) -> DomainError:
    if refusal.code == "stopped":
        return AgentStopped()
    if refusal.code == "paused":
        return Conflict("This is paused. Ask again later.")
    if refusal.code == "window_closed":
        return GrantExpired()
    if refusal.code == "tool_changed":
        return ToolChanged(refusal.detail)
    if refusal.code == run.UNWRITTEN.code:
        return _build_unwritten_error(RETRY_AFTER_S)
    return PreconditionFailed(refusal.detail or TAKEN_BACK, reason=refusal.code)


def _build_redeem_error(execution_id: str) -> DomainError:
    execution = Execution.objects.select_related("grant").get(pk=execution_id)
    if execution.status == ExecutionStatus.REFUSED:
        return _refusal_to_error(Refusal(execution.code, execution.detail))
    refusal = rechecks.find_stop_refusal(execution)
    queued, until = execution.status == ExecutionStatus.QUEUED, execution.lease_until
    lapsed = until is not None and until <= clock.now()
    if refusal and (queued or lapsed):
        return _refusal_to_error(refusal)
    return _build_not_due_error(execution) if queued else GrantSpent()


def _build_unwritten_error(seconds: int) -> Unavailable:
    detail = f"{run.UNWRITTEN.detail} Nothing was handed out. Ask again shortly."
    return Unavailable(detail, retry_after=seconds)


def _build_not_due_error(execution: Execution) -> DomainError:
    begins, now = execution.grant.not_before, clock.now()
    if begins is None or begins <= now:
        seconds = max(math.ceil((execution.due_at - now).total_seconds()), 1)
        if execution.code == run.UNWRITTEN.code:
            return _build_unwritten_error(seconds)
        return Conflict(NOT_DUE, retry_after=seconds)
    return Conflict(
        f"The approval holds from {format_time(begins)}. Nothing was done. Redeem the "
        "grant then.",
        not_before=clock.format_instant(begins),
    )


def report_outcome(
    *,
    execution: Execution,
    fence: int,
    action_hash: str,
    outcome: EffectOutcome,
    actor: log.Actor,
) -> Execution:
    """Record what an agent reports about the effect that it performed. A repeated
    report gets the same answer, for an agent that did not receive the first. Raises
    NotFound, StaleFence, and Conflict for the outcome of another action. A refused
    report is still stored, as evidence that settles nothing."""
    report: dict[str, Any] = {
        "execution_id": execution.pk,
        "fence": fence,
        "outcome": _adjust_outcome(execution, fence, outcome),
        "actor": actor,
    }
    if execution.grant.action_hash != action_hash:
        record.record_late_report(action_hash=action_hash, **report)
        raise Conflict("This is the outcome of another action. Nothing was recorded.")
    try:
        return record.record_outcome(**report)
    except StaleFence:
        if record.record_late_report(action_hash=action_hash, **report):
            return execution
        raise


def _adjust_outcome(
    execution: Execution, fence: int, outcome: EffectOutcome
) -> EffectOutcome:
    """Turn the outcome into an unknown one when it says nothing about earlier attempts
    and there may have been some: the fence is above 1, or a restore lost history."""
    if not outcome.leaves_earlier_open:
        return outcome
    if fence > 1 or uncertain.predates_restore(execution):
        return executors.build_unknown(outcome.code, outcome.detail)
    return outcome

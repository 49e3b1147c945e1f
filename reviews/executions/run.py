"""Run one attempt of an execution: claim it, look up what earlier attempts did, check
again what must still hold, perform the effect and record the outcome.

Recovery never performs an effect itself: it queues the execution again, and the claim
decides.
"""

from __future__ import annotations

from dataclasses import replace

import structlog

from journal import failpoints, writes
from journal.errors import StaleFence
from policies.choices import ExecutionClass
from reviews.models import Execution
from reviews.tool_services import executors
from reviews.tool_services.executors import EffectOutcome

from . import claims, leases, rechecks
from .claims import Claim
from .rechecks import Refusal
from .record import record_late_report, record_outcome, record_refusal

# The disk of this host says nothing about the action: another host can take it.
UNWRITTEN = Refusal(
    "unwritten",
    "This host cannot write its note of it.",
    retryable=True,
    costs_attempt=False,
)


def look_up_earlier_attempts(claim: Claim) -> EffectOutcome | None:
    """Ask the service what earlier attempts did. None when no earlier attempt can have
    had an effect, or the service cannot be asked. Runs outside a transaction."""
    if claim.untouched or claim.definition.look_up is None:  # guard: look-up-first
        return None
    outcome = executors.look_up_effect(claim.definition, claim.call)
    failpoints.point("looked_up", claim.execution.pk)
    return outcome


def is_effect_denied(claim: Claim, outcome: EffectOutcome) -> bool:
    """Whether the service says that nothing happened, so that the effect may begin. A
    reported failure counts only after a person retried the execution: otherwise it is
    the outcome of an unfinished attempt."""
    if outcome.status != "failed":
        return False
    retried = claim.execution.retried_at is not None
    return outcome.code == executors.NOT_FOUND or retried  # guard: attempt-open


def may_repeat_effect(claim: Claim, outcome: EffectOutcome) -> bool:
    """Whether the effect may be requested again although the look-up gave no answer: a
    keyed provider performs the same key once."""
    keyed = claim.execution.execution_class is ExecutionClass.KEYED
    return keyed and outcome.status == "unknown" and not claim.over


logger = structlog.get_logger(__name__)


def run_execution(execution_id: str) -> None:
    """Claim an execution, perform it and record the outcome. Any number of concurrent
    calls is safe: only one gets the claim. If the process dies, the lease lapses and a
    sweep queues the execution again. Raises NotFound, DatabaseRestored."""
    failpoints.point("before_claim", execution_id)
    claim = claims.claim_execution(
        execution_id=execution_id, actor=claims.EXECUTOR_ACTOR
    )
    if claim is None:
        return
    structlog.contextvars.bind_contextvars(
        proposal=claim.execution.proposal_id, execution=execution_id
    )
    failpoints.point("after_claim", execution_id)
    try:
        outcome = _attempt_effect(claim)
    except StaleFence:
        logger.warning("stale_fence", execution=execution_id, fence=claim.fence)
        return
    failpoints.point("before_record", execution_id)
    try:
        _record_conclusion(claim, outcome)
    except StaleFence:
        _keep_late_outcome(claim, outcome)
        return
    failpoints.point("after_record", execution_id)


def _keep_late_outcome(claim: Claim, outcome: EffectOutcome | Refusal) -> None:
    """Another attempt took over while this one was delayed: store its outcome."""
    logger.warning("stale_fence", execution=claim.execution.pk, fence=claim.fence)
    if isinstance(outcome, EffectOutcome) and not outcome.looked_up:
        record_late_report(
            execution_id=claim.execution.pk,
            fence=claim.fence,
            action_hash=claim.execution.grant.action_hash,
            outcome=outcome,
            actor=claims.EXECUTOR_ACTOR,
        )


def _attempt_effect(claim: Claim) -> EffectOutcome | Refusal:
    earlier = look_up_earlier_attempts(claim)
    if earlier is not None:
        denied = is_effect_denied(claim, earlier)
        if not denied and not may_repeat_effect(claim, earlier):  # guard: found-once
            return earlier
        if claim.over:
            return Refusal(claim.over, "It never ran, and nothing is begun any more.")
        claim = replace(claim, untouched=denied)
    refusal = rechecks.find_refusal(claim.execution, claim.definition)
    if refusal is not None and claim.untouched:
        return refusal
    if refusal is not None and refusal.code != "precondition":
        return EffectOutcome("unknown", code=refusal.code, detail=refusal.detail)
    # Our own earlier attempt may have changed the state, so a failed precondition does
    # not stop a repeated attempt: the provider answers a known key from memory.
    failpoints.point("rechecked", claim.execution.pk)
    return _perform_effect(claim)


def _perform_effect(claim: Claim) -> EffectOutcome | Refusal:
    refusal = try_record_outside(claim.execution)
    leases.begin_attempt(claim)
    # guard: at-last
    # The last check before the effect: a stop may have come since the first.
    refusal = refusal or rechecks.find_final_refusal(claim.execution)
    if refusal is not None:
        doubt = EffectOutcome("unknown", code=refusal.code, detail=refusal.detail)
        return refusal if claim.untouched else doubt
    failpoints.point("before_effect", claim.execution.pk)
    outcome = executors.perform_effect(claim.definition, claim.call)
    failpoints.point("after_effect", claim.execution.pk)
    if outcome.leaves_earlier_open and not claim.untouched:  # guard: earlier-open
        return EffectOutcome("unknown", code=outcome.code, detail=outcome.detail)
    return outcome


def try_record_outside(execution: Execution) -> Refusal | None:
    """Record the claim outside the database. Returns a refusal when that fails: without
    the note, a restore could lose the effect."""
    try:
        leases.record_outside_database(execution)
    except OSError as error:
        logger.error("epoch.not_written", error=str(error))
        return UNWRITTEN
    return None


def _record_conclusion(claim: Claim, outcome: EffectOutcome | Refusal) -> None:
    """Record the outcome with the readings that no earlier write stored. They are kept
    even when another attempt has taken over."""
    execution, readings = claim.execution, leases.take_readings(claim.execution)
    try:
        if isinstance(outcome, Refusal):
            record_refusal(
                execution_id=execution.pk,
                fence=claim.fence,
                refusal=outcome,
                readings=readings,
            )
        else:
            record_outcome(
                execution_id=execution.pk,
                fence=claim.fence,
                outcome=outcome,
                actor=claims.EXECUTOR_ACTOR,
                readings=readings,
            )
    except StaleFence:
        writes.insert_rows(readings)
        raise

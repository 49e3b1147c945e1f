"""Record what became of an attempt, under its fence (docs/invariants.md I20, I22).

The outcome finishes the execution, queues another attempt, or leaves it UNKNOWN. A
refusal before the effect is recorded here too, and so is a report that came too late to
count. Texts of a service or an agent are redacted before they are stored; a result is
also encrypted for its agent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from journal import canonical, clock, encryption, failpoints, log, writes
from journal.errors import StaleFence
from journal.operations import operation
from policies import facts
from policies.choices import ExecutionClass
from reviews import locks, transitions
from reviews.alarms import late_reports, standing
from reviews.choices import WITHOUT_EFFECT
from reviews.grants import sequence
from reviews.models import Execution, StateReading
from reviews.redaction.redactor import load_redactor_of
from reviews.tool_services.executors import EffectOutcome

from . import claims, finish, leases, rechecks
from .claims import Claim
from .rechecks import Refusal


def compute_back_off(execution: Execution) -> timedelta:
    """The wait before the next attempt, by the number of attempts so far."""
    return execution.tool_definition.retry.after(execution.attempts)


def has_tries_left(execution: Execution) -> bool:
    """Whether the tool's retry limit allows another attempt."""
    return execution.attempts < execution.tool_definition.retry.attempts


def requeue_execution(
    execution: Execution,
    code: str,
    detail: str,
    due: datetime,
    actor: log.Actor,
    now: datetime,
    **changes: Any,
) -> None:
    """Queue a claimed execution again, due at `due`; `changes` are more columns. A
    step: the caller holds the execution's lock."""
    transitions.execution.apply(
        execution,
        "requeue",
        actor=actor,
        now=now,
        changes={
            "lease_until": None,
            "due_at": due,
            "code": code,
            "detail": detail,
            **changes,
        },
        data={"execution": execution.pk, "code": code},
    )


@operation(
    locks="grant, execution, alarm",
    writes="StateReading, Execution, Observation, Alarm",
    logs="execution.requeued, or execution.refused and alarm.raised",
    after="mail, webhook, wake-up",
)
def release_claim(*, claim: Claim, refusal: Refusal) -> None:
    """Undo the claim of a redeem call that a check refused, before the agent got it.
    Without an earlier attempt the execution is refused or queued again. Otherwise its
    lease ends and the attempt is not counted, if the reason is temporary or a stop.
    Raises StaleFence, also when a repeated call got the claim meanwhile: its agent may
    be performing the effect."""
    execution = leases.load_fenced_execution(claim.execution.pk, claim.fence)
    if execution.began_at is not None:  # guard: redeem-begun
        raise StaleFence
    writes.insert_rows(leases.take_readings(claim.execution))
    if claim.untouched:
        _refuse_or_requeue(execution, refusal)
    elif refusal.retryable or refusal in {rechecks.STOPPED, rechecks.STOPPED_SINCE}:
        Execution.objects.filter(pk=execution.pk, fence=claim.fence).update(
            lease_until=clock.now(), attempts=execution.attempts - 1
        )


@operation(
    locks="grant, execution, alarm",
    writes="StateReading, Execution, Observation, Alarm",
    logs="execution.requeued, or execution.refused and alarm.raised",
    after="mail, webhook, wake-up",
)
def record_refusal(
    *,
    execution_id: str,
    fence: int,
    refusal: Refusal,
    readings: Sequence[StateReading] = (),
) -> Execution:
    """Record that a re-check refused the claim, before any attempt had an effect, with
    what it read. Raises NotFound, StaleFence."""
    execution = leases.load_fenced_execution(execution_id, fence)
    writes.insert_rows(readings)
    _refuse_or_requeue(execution, refusal)
    return execution


def _refuse_or_requeue(execution: Execution, refusal: Refusal) -> None:
    now = clock.now()
    due = now + compute_back_off(execution)
    again = (execution, refusal.code, refusal.detail, due, claims.EXECUTOR_ACTOR, now)
    if not refusal.costs_attempt:
        requeue_execution(*again, attempts=execution.attempts - 1)
    elif refusal.retryable and has_tries_left(execution):
        requeue_execution(*again)
    else:
        finish.refuse_execution(execution, refusal, now)


def redact_outcome(execution: Execution, outcome: EffectOutcome) -> EffectOutcome:
    """Redact the outcome's code and detail, which a service or an agent wrote, so that
    they may be stored and logged. A code that Counterseal reserves becomes `failed`."""
    grant = execution.grant
    redactor = load_redactor_of(grant.proposal, grant.revision)
    code = redactor.text(outcome.code)[:64]
    code = "failed" if code in late_reports.SETTLED_BY_OTHERS else code
    return replace(outcome, code=code, detail=redactor.text(outcome.detail))


def build_result_columns(
    execution: Execution, result: dict[str, Any]
) -> dict[str, Any]:
    """Build a result's columns: encrypted for the agent, redacted for people, and the
    SHA-256 digest of its canonical bytes."""
    blob, grant = canonical.encode(result), execution.grant
    redactor = load_redactor_of(grant.proposal, grant.revision)
    return {
        "result": encryption.encrypt_stored(blob, execution.pk.encode()),
        "result_shown": redactor.foreign(result),
        "result_digest": "sha256:" + hashlib.sha256(blob).hexdigest(),
    }


def decrypt_result(execution: Execution) -> dict[str, Any] | None:
    """The whole result, for the agent that asked for the effect; None without one."""
    if execution.result is None:
        return None
    blob = encryption.decrypt_stored(execution.result, execution.pk.encode())
    value: dict[str, Any] = canonical.parse(blob)
    return value


MAX_FENCE = 2**31 - 1  # largest fence that a report's column holds
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


@operation(
    locks="grant, execution, alarm",
    writes="StateReading, Execution, Observation, Batch (halted), LateReport, Alarm",
    logs="execution.succeeded, execution.failed, execution.requeued or "
    "execution.unknown; execution.reported_late; alarm.raised, alarm.closed",
    after="mail, webhook, wake-up",
)
def record_outcome(
    *,
    execution_id: str,
    fence: int,
    outcome: EffectOutcome,
    actor: log.Actor,
    readings: Sequence[StateReading] = (),
) -> Execution:
    """Record what became of an attempt, under its fence, with what the checks read if
    they kept it from its effect. Raises NotFound, StaleFence."""
    execution = leases.load_fenced_execution(execution_id, fence)
    now = clock.now()
    with writes.unit_of_work():
        writes.insert_rows(readings)
        _apply_outcome(execution, redact_outcome(execution, outcome), actor, now)
    failpoints.point("record_uncommitted", execution_id)
    return execution


def _apply_outcome(
    execution: Execution, outcome: EffectOutcome, actor: log.Actor, now: datetime
) -> None:
    grant, fence, until = execution.grant, execution.fence, execution.lease_until
    lapsed = until is not None and until <= now
    late = actor.kind == "agent" and (lapsed or grant.expires_at <= now)
    if outcome.status == "succeeded":
        _record_success(execution, outcome, actor, now)
    elif outcome.status == "failed":
        _record_failure(execution, outcome, actor, now)
    else:
        _retry_or_mark_unknown(execution, outcome, actor, now)
    if late:
        columns = _build_report_columns(execution, fence, grant.action_hash, outcome)
        late_reports.record_report(
            execution, columns=columns, actor=actor, now=now, counted=True
        )


def _record_success(
    execution: Execution, outcome: EffectOutcome, actor: log.Actor, now: datetime
) -> None:
    columns = build_result_columns(execution, outcome.result or {})
    columns["looked_up"], digest = outcome.looked_up, columns["result_digest"]
    finish.finish_execution(execution, "succeed", actor, now, columns, digest=digest)
    facts.mark_effect_ran(execution.proposal_id, at=now)
    standing.raise_for_success(execution, now)
    standing.raise_for_repeated_effect(execution, outcome.effects, now)


def _record_failure(
    execution: Execution, outcome: EffectOutcome, actor: log.Actor, now: datetime
) -> None:
    """The attempt had no effect. Queue another one if the outcome allows it and tries
    and time are left; otherwise the execution has failed."""
    due = now + compute_back_off(execution)
    again = (
        (outcome.this_attempt_only or outcome.again)
        and has_tries_left(execution)
        and due < execution.grant.expires_at
    )
    if again:
        requeue_execution(execution, outcome.code, outcome.detail, due, actor, now)
        return
    by_agent = actor.kind == "agent"
    why: dict[str, Any] = {"code": outcome.code, "detail": outcome.detail}
    if by_agent and execution.has_look_up:
        why["ask_at"] = claims.compute_quiet_time(execution)
    finish.finish_execution(execution, "fail", actor, now, why, code=outcome.code)
    sequence.halt_batch(execution, now)
    proposal = execution.grant.proposal
    if by_agent:  # else an agent could empty the sums that limit it by its word alone
        facts.mark_effect_ran(proposal.pk, at=now)  # guard: agent-word
    else:
        facts.mark_effect_denied(proposal.pk)
    facts.record_failure(agent=proposal.agent, proposal=proposal.pk, at=now)


def _retry_or_mark_unknown(
    execution: Execution, outcome: EffectOutcome, actor: log.Actor, now: datetime
) -> None:
    """It may have happened. For a keyed or queryable tool a worker soon asks its
    service, or repeats the call; otherwise the outcome is UNKNOWN."""
    due = _compute_next_ask(execution, now)
    again = (
        execution.execution_class is not ExecutionClass.OPAQUE
        and has_tries_left(execution)
        and due < execution.grant.expires_at
        and not execution.by_agent
    )
    if again:
        Execution.objects.filter(pk=execution.pk, fence=execution.fence).update(
            lease_until=due, code=outcome.code, detail=outcome.detail
        )
        return
    finish.mark_unknown(execution, outcome.code, outcome.detail, now, actor)


def _compute_next_ask(execution: Execution, now: datetime) -> datetime:
    """When to claim it again. A look-up waits until the lease is over: a service that
    is still working would deny the effect, and then perform it beside the next attempt.
    """
    due, until = now + compute_back_off(execution), execution.lease_until
    if execution.began_at is None or until is None or not execution.has_look_up:
        return due
    return max(due, until)  # guard: lease-later


@operation(
    locks="grant, execution, alarm",
    writes="LateReport, Observation, Alarm",
    logs="execution.reported_late, alarm.raised",
    after="mail, wake-up",
)
def record_late_report(
    *,
    execution_id: str,
    fence: int,
    action_hash: str,
    outcome: EffectOutcome,
    actor: log.Actor,
) -> bool:
    """Store a report that came too late to count; it settles nothing. Returns whether
    it only repeats what is recorded. Raises NotFound."""
    execution, now = locks.lock_execution(execution_id), clock.now()
    columns = _build_report_columns(
        execution, fence, action_hash, redact_outcome(execution, outcome)
    )
    repeats = late_reports.record_report(
        execution, columns=columns, actor=actor, now=now
    )
    count_found_effect(execution, outcome, now)
    return repeats


def record_found_effect(
    execution: Execution, outcome: EffectOutcome, actor: log.Actor, now: datetime
) -> None:
    """Store, as a late report, an effect that a look-up found after it was recorded as
    not having happened. A step: the caller holds the execution's lock; `outcome` is
    already redacted."""
    columns = _build_report_columns(
        execution, execution.fence, execution.grant.action_hash, outcome
    )
    late_reports.record_report(execution, columns=columns, actor=actor, now=now)
    count_found_effect(execution, outcome, now)


def count_found_effect(
    execution: Execution, outcome: EffectOutcome, now: datetime
) -> None:
    """Count a FAILED or REFUSED execution in the sums again when `outcome` says that it
    succeeded. Caller holds the execution's lock."""
    if outcome.status == "succeeded" and execution.status in WITHOUT_EFFECT:
        at = execution.grant.revision.created_at
        facts.restore_observations(execution.proposal_id, at=at, ran_by=now)
        facts.mark_effect_ran(execution.proposal_id, at=now)


def _build_report_columns(
    execution: Execution, fence: int, action_hash: str, outcome: EffectOutcome
) -> dict[str, Any]:
    """The columns of a LateReport; `outcome` is already redacted."""
    happened = outcome.status == "succeeded"
    result = build_result_columns(execution, outcome.result or {}) if happened else {}
    return {
        "fence": min(fence, MAX_FENCE),
        "status": outcome.status,
        "action_hash": action_hash if _HASH.fullmatch(action_hash) else "",
        "result_shown": result.get("result_shown"),
        "result_digest": result.get("result_digest", ""),
        "code": outcome.code,
        "detail": outcome.detail,
    }

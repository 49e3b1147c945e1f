"""Look-ups and audits: ask a tool's service by our own reference what became of an
effect. Nothing is ever performed here.

A look-up is for an unknown outcome. The service is asked repeatedly for a bounded time,
and a clear answer settles the execution. A person may settle it at any time, which ends
the look-ups.

An audit is for an effect that should not exist, and settles nothing. A refused
execution that the service reports as done ran without a grant. An execution that its
agent reports as failed leaves the sums only when the service denies it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q

from journal import clock, log
from journal.errors import Conflict
from journal.operations import operation
from policies import facts
from policies.models import Person
from policies.people import build_actor
from reviews import locks, permissions, transitions
from reviews.alarms import standing
from reviews.choices import (
    SETTLED_BY_LOOK_UP,
    WITHOUT_EFFECT,
    AlarmKind,
    ExecutionStatus,
)
from reviews.grants import uncertain
from reviews.models import Execution, LookUp
from reviews.models.executions import NO_LOOK_UP
from reviews.tool_services import executors
from reviews.tool_services.executors import EffectOutcome

from . import claims, finish, record

RECONCILER = log.Actor("system", "reconciler")
# After this, a look-up happens only when a person asks.
LOOK_UP_PERIOD = timedelta(hours=24)
MAX_LOOK_UP_WAIT = timedelta(hours=1)
CHUNK = 50
NOT_FOUND = executors.NOT_FOUND


def list_due_look_ups() -> list[str]:
    """Ids of up to 50 executions whose look-up is due, longest waiting first."""
    due = Execution.objects.filter(
        ask_at__lte=clock.ClockTimestamp(), status=ExecutionStatus.UNKNOWN
    )
    return list(due.order_by("ask_at").values_list("pk", flat=True)[:CHUNK])


def look_up_if_due(execution_id: str) -> Execution | None:
    """Make one look-up, if it is due, and record the answer; None when none is due.
    Raises NotFound."""
    execution = plan_look_up(execution_id=execution_id)
    return _perform_look_up(execution, RECONCILER) if execution else None


def look_up_for_person(execution_id: str, person: Person) -> Execution:
    """Make one look-up now for a person. Raises NotFound, NotPermitted, Conflict."""
    execution = plan_look_up(execution_id=execution_id, person=person)
    if execution is None:
        raise Conflict("The result is already known. No look-up was made.")
    return _perform_look_up(execution, build_actor(person))


def _perform_look_up(execution: Execution, actor: log.Actor) -> Execution:
    outcome = _ask_service(execution)
    return record_look_up(asked=execution, outcome=outcome, actor=actor)


def _ask_service(execution: Execution) -> EffectOutcome:
    """Runs outside any transaction."""
    call = claims.build_look_up_call(execution)
    return executors.look_up_effect(execution.tool_definition, call)


@operation(locks="grant, execution", writes="Execution", after="the look-up")
def plan_look_up(
    *, execution_id: str, person: Person | None = None
) -> Execution | None:
    """Count the look-up and schedule the next one, before the service is called, so
    that a call that crashes the worker counts too. None when there is nothing to ask.
    Raises NotFound, and for a person NotPermitted or Conflict."""
    execution = locks.lock_execution(execution_id)
    definition = execution.tool_definition
    if person is not None:
        permissions.check_can_settle_unknown(person, execution)
        if definition.look_up is None:
            raise Conflict("This tool has no look-up, so its service was not asked.")
    if execution.status != ExecutionStatus.UNKNOWN:
        return None
    now = clock.now()
    if definition.look_up is None or not (person or _is_due(execution, now)):
        return None
    execution.ask_at = _compute_next_look_up(execution, now)
    execution.asked += 1
    execution.save(update_fields=["asked", "ask_at"])
    return execution


def _is_due(execution: Execution, now: datetime) -> bool:
    return execution.ask_at is not None and execution.ask_at <= now


def _compute_next_look_up(execution: Execution, now: datetime) -> datetime | None:
    """The wait doubles each time, up to the maximum. None when the look-up period is
    over, or when only people can settle the outcome."""
    if execution.code == uncertain.OTHER_VERSION.code:
        return None
    wait = finish.FIRST_LOOK_UP * 2 ** min(execution.asked + 1, 10)
    later = now + min(wait, MAX_LOOK_UP_WAIT)
    assert execution.unknown_at is not None, "an unknown execution has its time"
    return later if later < execution.unknown_at + LOOK_UP_PERIOD else None


@operation(
    locks="grant, execution, alarm",
    writes="LookUp, Execution, Observation, LateReport, Alarm",
    logs="execution.looked_up, execution.settled, execution.reported_late, "
    "alarm.raised",
    after="mail, webhook, wake-up",
)
def record_look_up(
    *, asked: Execution, outcome: EffectOutcome, actor: log.Actor
) -> Execution:
    """Record what the service said. A clear answer settles the execution, unless a
    person settled it first; if the two contradict, this raises an alarm. Raises
    NotFound."""
    execution = locks.lock_execution(asked.pk)
    now = clock.now()
    outcome = record.redact_outcome(execution, outcome)
    answer = NOT_FOUND if outcome.code == NOT_FOUND else outcome.status
    LookUp.objects.create(
        execution=execution,
        number=asked.asked,
        at=now,
        by_kind=actor.kind,
        by_id=actor.id,
        said=answer,
        code="" if answer in {"succeeded", NOT_FOUND} else outcome.code,
        detail="" if answer == NOT_FOUND else outcome.detail,
    )
    proposal = execution.grant.proposal
    log.append(
        "execution.looked_up",
        actor=actor,
        at=now,
        proposal=proposal.pk,
        agent=proposal.agent,
        thread=proposal.thread,
        data={"execution": execution.pk, "number": asked.asked, "said": answer},
    )
    if execution.status == ExecutionStatus.UNKNOWN:
        if execution.fence == asked.fence:  # else another attempt began
            _settle_by_answer(execution, outcome, answer, now)
    elif execution.status == ExecutionStatus.FAILED and answer == "succeeded":
        record.record_found_effect(execution, outcome, actor, now)
    standing.raise_for_repeated_effect(execution, outcome.effects, now)
    return execution


def _settle_by_answer(
    execution: Execution, outcome: EffectOutcome, answer: str, now: datetime
) -> None:
    if answer == "succeeded":
        columns = record.build_result_columns(execution, outcome.result or {})
        _apply_settlement(execution, "settle_succeeded", now, happened=True, **columns)
        facts.mark_effect_ran(execution.proposal_id, at=now)
    elif execution.code == uncertain.OTHER_VERSION.code:
        return  # the look-up was for these bytes, and an earlier version may have run
    elif answer == "failed" or (
        # Before the quiet time, the attempt may still be on its way to the service.
        answer == NOT_FOUND and claims.compute_quiet_time(execution) <= now
    ):
        detail = (
            outcome.detail or "The service has no record of Counterseal's reference."
        )
        _apply_settlement(
            execution, "settle_failed", now, happened=False, detail=detail
        )
        proposal = execution.grant.proposal
        facts.mark_effect_denied(proposal.pk)
        facts.record_failure(agent=proposal.agent, proposal=proposal.pk, at=now)


def _apply_settlement(
    execution: Execution, event: str, now: datetime, *, happened: bool, **changes: Any
) -> None:
    transitions.execution.apply(
        execution,
        event,
        actor=RECONCILER,
        now=now,
        changes={
            "finished_at": now,
            "code": SETTLED_BY_LOOK_UP,
            "ask_at": None,
            **changes,
        },
        data={
            "execution": execution.pk,
            "happened": happened,
            "asked": execution.asked,
        },
    )


AUDITOR = log.Actor("system", "auditor")
# For one sweep: look-ups of unknown outcomes wait behind the audits.
AUDIT_CHUNK = 20
# After SETTLED a call that was under way has arrived. Nothing is audited after HORIZON.
SETTLED, HORIZON = timedelta(minutes=1), timedelta(hours=24)


def list_due_audits() -> list[str]:
    """Ids of executions to audit now. First refused ones, those never audited before
    the rest, so that a silent service delays no first audit; then those that failed
    only by their agent's report."""
    now = clock.now()
    refused = Execution.objects.filter(
        Q(audited_at__isnull=True) | Q(ask_at__lte=now),
        status=ExecutionStatus.REFUSED,
        finished_at__gt=now - HORIZON,
        finished_at__lte=now - SETTLED,
    )
    unasked = F("audited_at").asc(nulls_first=True)
    refused = refused.exclude(NO_LOOK_UP).order_by(unasked, "finished_at")
    failed = Execution.objects.filter(
        status=ExecutionStatus.FAILED, ask_at__lte=now, finished_at__gt=now - HORIZON
    ).order_by("ask_at")
    return [
        execution_id
        for executions in (refused, failed)
        for execution_id in executions.values_list("pk", flat=True)[:AUDIT_CHUNK]
    ]


def audit_execution(execution_id: str) -> bool:
    """Audit one execution, if it is due. Returns whether its effect was found. Raises
    NotFound."""
    execution = plan_audit(execution_id=execution_id)
    if execution is None:
        return False
    outcome = _ask_service(execution)
    if outcome.status == "unknown":
        return False  # a later audit asks again
    return record_audit(
        execution_id=execution.pk, fence=execution.fence, outcome=outcome
    )


@operation(locks="grant, execution", writes="Execution", after="the look-up")
def plan_audit(*, execution_id: str) -> Execution | None:
    """Schedule the next audit, before the service is called, so that a call that
    crashes the worker counts too. None when the service cannot be asked, or another
    worker just did. Raises NotFound."""
    execution, now = locks.lock_execution(execution_id), clock.now()
    if not _is_audit_due(execution, now):
        return None
    ask_at = None
    if execution.has_look_up:  # wait as long as it is since the end
        ask_at = now + max(SETTLED, now - (execution.finished_at or now))
    Execution.objects.filter(pk=execution_id).update(audited_at=now, ask_at=ask_at)
    return execution if execution.has_look_up else None


def _is_audit_due(execution: Execution, now: datetime) -> bool:
    due = _is_due(execution, now)
    if execution.status == ExecutionStatus.FAILED:
        return due
    unasked = execution.audited_at is None
    return execution.status == ExecutionStatus.REFUSED and (unasked or due)


@operation(
    locks="grant, execution, alarm",
    writes="Execution, Observation, LateReport, Alarm",
    logs="execution.reported_late, alarm.raised",
    after="mail, wake-up",
)
def record_audit(*, execution_id: str, fence: int, outcome: EffectOutcome) -> bool:
    """Record the answer and end the audit. An effect that was found raises an alarm and
    counts in the sums; one that was not found leaves the sums. Returns whether it was
    found. Raises NotFound."""
    execution = locks.lock_execution(execution_id)
    if execution.status not in WITHOUT_EFFECT or execution.fence != fence:
        return False
    Execution.objects.filter(pk=execution_id).update(ask_at=None)
    if outcome.status != "succeeded":
        facts.mark_effect_denied(execution.proposal_id)
        return False
    now = clock.now()
    if execution.status == ExecutionStatus.FAILED:
        there = record.redact_outcome(execution, outcome)
        record.record_found_effect(execution, there, AUDITOR, now)
    else:
        standing.raise_execution_alarm(
            execution,
            AlarmKind.WITHOUT_GRANT,
            now,
            found="look_up",
            recorded=execution.status,
            code=execution.code,
        )
        record.count_found_effect(execution, outcome, now)
    standing.raise_for_repeated_effect(execution, outcome.effects, now)
    return True

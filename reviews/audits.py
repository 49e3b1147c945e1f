"""Effects that are said never to have happened, looked for in the world: their service
is asked by our reference until it says something clear. What was refused and is there
ran without a permission; what its agent says failed leaves the sums only once the
service denies it.

Nothing is ever performed here, and nothing of the execution is settled.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q

from journal import clock, log
from policies import facts

from . import executors, locks
from .alarms import standing
from .choices import AlarmKind, ExecutionStatus
from .executions import claims, record, results
from .executors import Outcome
from .grants import approved_tool
from .models import Execution
from .models.executions import BLIND

AUDITOR = log.Actor("system", "auditor")
# Of one sweep: what nobody knows of waits behind them.
CHUNK = 20
# By then what was under way has arrived; older ones are nobody's any more.
SETTLED, HORIZON = timedelta(minutes=1), timedelta(hours=24)


def due() -> list[str]:
    """Refused executions whose service is to be asked now, those that it was not asked
    of first: one that is silent keeps nobody from being asked once. Then those of which
    only their agent says that they failed."""
    now = clock.now()
    found = Execution.objects.filter(
        Q(audited_at__isnull=True) | Q(ask_at__lte=now),
        status=ExecutionStatus.REFUSED,
        finished_at__gt=now - HORIZON,
        finished_at__lte=now - SETTLED,
    )
    unasked = F("audited_at").asc(nulls_first=True)
    rows = found.exclude(BLIND).order_by(unasked, "finished_at")
    return [*rows.values_list("pk", flat=True)[:CHUNK], *_said_to_fail(now)]


def _said_to_fail(now: datetime) -> list[str]:
    found = Execution.objects.filter(
        status=ExecutionStatus.FAILED,
        ask_at__lte=now,
        finished_at__gt=now - HORIZON,
    )
    return list(found.order_by("ask_at").values_list("pk", flat=True)[:CHUNK])


def look(execution_id: str) -> bool:
    """Ask after one, if it is time; whether it was found. Raises NotFound."""
    execution = begin(execution_id=execution_id)
    return execution is not None and _audit(execution)


def _audit(execution: Execution) -> bool:
    """Ask once, outside any transaction."""
    definition = approved_tool.definition_of(execution)
    found = executors.look_up(definition, claims.inquiry(execution))
    if found.status == "unknown":
        return False  # asked again in time
    return keep(execution_id=execution.pk, fence=execution.fence, found=found)


@transaction.atomic(durable=True)
def begin(*, execution_id: str) -> Execution | None:
    """Say when it is asked next: who dies while asking has asked. None when there is
    nobody to ask, or somebody else just did. Locks: grant, execution. Raises
    NotFound."""
    execution, now = locks.execution(execution_id), clock.now()
    if not _is_due(execution, now):
        return None
    looked_up = approved_tool.can_be_asked(execution)
    ask_at = _next(execution, now) if looked_up else None
    Execution.objects.filter(pk=execution_id).update(audited_at=now, ask_at=ask_at)
    return execution if looked_up else None


def _is_due(execution: Execution, now: datetime) -> bool:
    asked = execution.ask_at is not None and execution.ask_at <= now
    if execution.status == ExecutionStatus.FAILED:
        return asked
    unasked = execution.audited_at is None
    return execution.status == ExecutionStatus.REFUSED and (unasked or asked)


def _next(execution: Execution, now: datetime) -> datetime:
    """After as long again as it is over."""
    return now + max(SETTLED, now - (execution.finished_at or now))


@transaction.atomic(durable=True)
def keep(*, execution_id: str, fence: int, found: Outcome) -> bool:
    """Nobody is asked again; raise what was found, and let what was not weigh in no
    sum. Locks: grant, execution, alarm. Raises NotFound."""
    execution = locks.execution(execution_id)
    ended = {ExecutionStatus.REFUSED, ExecutionStatus.FAILED}
    if execution.status not in ended or execution.fence != fence:
        return False
    Execution.objects.filter(pk=execution_id).update(ask_at=None)
    if found.status != "succeeded":
        facts.deny_effect(execution.proposal_id)
        return False
    now = clock.now()
    if execution.status == ExecutionStatus.FAILED:
        there = results.redacted(execution, found)
        record.keep_found(execution, there, AUDITOR, now)
    else:
        said = {"recorded": execution.status, "code": execution.code}
        standing.about(execution, AlarmKind.WITHOUT_GRANT, now, found="look_up", **said)
        record.count_found(execution, found, now)
    standing.counted(execution, found.effects, now)
    return True

"""Effects that were refused, looked for in the world: their service is asked by our
reference until it says something clear, and what it finds there ran without a
permission.

Nothing is ever performed here, and nothing of the execution is settled.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q

from journal import clock

from . import alarms, approved, claims, executors, locks
from .choices import AlarmKind, ExecutionStatus
from .executors import Outcome
from .models import Execution
from .models.executions import BLIND

# Of one sweep: what nobody knows of waits behind them.
CHUNK = 20
# By then what was under way has arrived; older ones are nobody's any more.
SETTLED, HORIZON = timedelta(minutes=1), timedelta(hours=24)


def due() -> list[str]:
    """Refused executions whose service is to be asked now, those that it was not asked
    of first: one that is silent keeps nobody from being asked once."""
    now = clock.now()
    found = Execution.objects.filter(
        Q(audited_at__isnull=True) | Q(ask_at__lte=now),
        status=ExecutionStatus.REFUSED,
        finished_at__gt=now - HORIZON,
        finished_at__lte=now - SETTLED,
    )
    unasked = F("audited_at").asc(nulls_first=True)
    rows = found.exclude(BLIND).order_by(unasked, "finished_at")
    return list(rows.values_list("pk", flat=True)[:CHUNK])


def look(execution_id: str) -> bool:
    """Ask after one, if it is time; whether it was found. Raises NotFound."""
    execution = begin(execution_id=execution_id)
    return execution is not None and _audit(execution)


def _audit(execution: Execution) -> bool:
    """Ask once, outside any transaction."""
    definition = approved.definition_of(execution)
    found = executors.look_up(definition, claims.inquiry(execution))
    if found.status == "unknown":
        return False  # asked again in time
    return keep(execution_id=execution.pk, found=found)


@transaction.atomic(durable=True)
def begin(*, execution_id: str) -> Execution | None:
    """Say when it is asked next: who dies while asking has asked. None when there is
    nobody to ask, or somebody else just did. Locks: grant, execution. Raises
    NotFound."""
    execution, now = locks.execution(execution_id), clock.now()
    if execution.status != ExecutionStatus.REFUSED or not _is_due(execution, now):
        return None
    looked_up = approved.can_be_asked(execution)
    ask_at = _next(execution, now) if looked_up else None
    Execution.objects.filter(pk=execution_id).update(audited_at=now, ask_at=ask_at)
    return execution if looked_up else None


def _is_due(execution: Execution, now: datetime) -> bool:
    if execution.audited_at is None:
        return True
    return execution.ask_at is not None and execution.ask_at <= now


def _next(execution: Execution, now: datetime) -> datetime:
    """After as long again as it is over."""
    return now + max(SETTLED, now - (execution.finished_at or now))


@transaction.atomic(durable=True)
def keep(*, execution_id: str, found: Outcome) -> bool:
    """Nobody is asked again; raise what was found. Locks: grant, execution, alarm.
    Raises NotFound."""
    execution = locks.execution(execution_id)
    if execution.status != ExecutionStatus.REFUSED:
        return False
    Execution.objects.filter(pk=execution_id).update(ask_at=None)
    if found.status != "succeeded":
        return False
    now = clock.now()
    facts = {"found": "look_up", "recorded": execution.status, "code": execution.code}
    alarms.about(execution, AlarmKind.WITHOUT_GRANT, now, **facts)
    alarms.counted(execution, found.effects, now)
    return True

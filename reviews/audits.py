"""Effects that were refused, looked for in the world: their service is asked once by
our reference, and what it finds there ran without a permission.

Nothing is ever performed here, and nothing of the execution is settled.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from journal import clock

from . import alarms, claims, executors, locks
from .choices import AlarmKind, ExecutionStatus
from .executors import Outcome
from .models import Execution

CHUNK = 200
MOST_ASKED = 5  # at once, so that a slow service keeps no worker for long
# By then what was under way has arrived; older ones are nobody's any more.
SETTLED, HORIZON = timedelta(minutes=1), timedelta(hours=24)


def due() -> list[str]:
    """Refused executions whose service was not asked yet, longest waiting first."""
    now = clock.now()
    found = Execution.objects.filter(
        status=ExecutionStatus.REFUSED,
        finished_at__gt=now - HORIZON,
        finished_at__lte=now - SETTLED,
        audited_at__isnull=True,
    )
    return list(found.order_by("finished_at").values_list("pk", flat=True)[:CHUNK])


def audit_due() -> int:
    """Ask after some of them; how many were found all the same."""
    asked = found = 0
    for execution_id in due():
        execution = begin(execution_id=execution_id)
        if execution is not None:
            asked, found = asked + 1, found + audit(execution)
        if asked == MOST_ASKED:
            break
    return found


def audit(execution: Execution) -> bool:
    """Ask once, outside any transaction; whether an effect was found."""
    definition = claims.definition_of(execution)
    found = executors.look_up(definition, claims.inquiry(execution))
    return found.status == "succeeded" and keep(execution_id=execution.pk, found=found)


@transaction.atomic(durable=True)
def begin(*, execution_id: str) -> Execution | None:
    """Mark it as asked, whoever dies while asking; None when there is nobody to ask or
    somebody else did. Raises NotFound."""
    execution = locks.execution(execution_id)
    if execution.status != ExecutionStatus.REFUSED or execution.audited_at:
        return None
    Execution.objects.filter(pk=execution_id).update(audited_at=clock.now())
    definition = claims.definition_of(execution)
    return execution if definition.look_up is not None else None


@transaction.atomic(durable=True)
def keep(*, execution_id: str, found: Outcome) -> bool:
    """Raise what was found. Raises NotFound."""
    execution = locks.execution(execution_id)
    if execution.status != ExecutionStatus.REFUSED:
        return False
    now = clock.now()
    facts = {"found": "look_up", "recorded": execution.status, "code": execution.code}
    alarms.about(execution, AlarmKind.WITHOUT_GRANT, now, **facts)
    alarms.counted(execution, found.effects, now)
    return True

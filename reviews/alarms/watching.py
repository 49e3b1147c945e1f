"""The sweep of what nobody noticed while it happened."""

from __future__ import annotations

from django.db import transaction

from journal import clock
from reviews import locks
from reviews.choices import AlarmKind

from . import undecidable
from . import watch as finding
from .raising import close_itself
from .standing import about
from .watch import CHUNK, SEARCHES, Search


def watch() -> int:
    """Raise what stands in the rows, and close what holds no more; how many. Safe to
    run any number of times at once."""
    now, changed = clock.now(), 0
    for kind, name, search in SEARCHES:
        for execution_id in search(now).values_list("pk", flat=True)[:CHUNK]:
            changed += find(kind=kind, name=name, search=search, pk=execution_id)
    for subject in finding.after_all(now).values_list("subject", flat=True)[:CHUNK]:
        changed += ran_after_all(execution_id=subject)
    return changed + undecidable.watch()


@transaction.atomic(durable=True)
def find(*, kind: AlarmKind, name: str, search: Search, pk: str) -> bool:
    """Raise one, unless it was raised or ceased to be meanwhile. Raises NotFound."""
    execution = locks.execution(pk)
    now = clock.now()
    if not search(now).filter(pk=pk).exists():
        return False
    facts = {"code": execution.code} if execution.status == "refused" else {}
    about(execution, kind, now, found=name, recorded=execution.status, **facts)
    return True


@transaction.atomic(durable=True)
def ran_after_all(*, execution_id: str) -> bool:
    """Let the alarm close itself. Raises NotFound."""
    locks.execution(execution_id)
    now = clock.now()
    if not finding.after_all(now).filter(subject=execution_id).exists():
        return False
    return close_itself(
        AlarmKind.NEVER_EXECUTED, subject=execution_id, now=now, code="executed"
    )

"""Whom a known failure can be tried again by."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db.models import Exists, OuterRef

from journal.errors import NotFound
from policies.models import Person
from reviews import permissions
from reviews.alarms import late_reports
from reviews.choices import ExecutionStatus
from reviews.desk.components import visibility
from reviews.models import Execution
from reviews.stops import scope


def able(person: Person, executions: Collection[str], now: datetime) -> set[str]:
    """Those of these ids that this person may have tried again, by the rules of
    `settlements.retry` that a query can ask for: not whether the sums have grown. Two
    queries at most, none for who decides nothing."""
    if not executions or permissions.deciding_role(person) is None:
        return set()
    rows = Execution.objects.filter(
        pk__in=executions, status=ExecutionStatus.FAILED, grant__expires_at__gt=now
    ).filter(grant__revision__tool__queue__in=permissions.queues_of(person))
    rows = rows.exclude(batch__halted_at__isnull=False)
    rows = rows.exclude(
        Exists(late_reports.unanswered().filter(execution=OuterRef("pk")))
    )
    rows = rows.exclude(scope.taken_back()).exclude(scope.revoked())
    mine = set(rows.values_list("pk", flat=True))
    return set() if mine and permissions.reviewer_stopped(person) else mine


def find(person: Person, pk: str) -> Execution:
    """An effect that this person may read. Raises NotFound."""
    mine = visibility.proposals(person).values("pk")
    rows = Execution.objects.select_related("proposal")
    found = rows.filter(pk=pk, proposal__in=mine).first()
    if found is None:
        raise NotFound
    return found

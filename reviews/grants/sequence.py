"""The order of executions in a batch that stops at its first failure.

They run one after another in the approved order. A failure halts the rest until a
person resumes the batch.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from journal.prepared_queries import Parameter, PreparedQuery
from reviews.choices import IN_FLIGHT, ExecutionStatus
from reviews.models import Batch, Decision, Execution


class BatchPlace(NamedTuple):
    """The batch in which a request was approved, and its position there."""

    batch: str
    position: int


def load_batch_places(requests: Collection[str]) -> dict[str, BatchPlace]:
    """The batch places of these requests by request id, read from the votes. One query.
    Requests that were decided alone are left out."""
    if not requests:
        return {}
    votes = Decision.objects.filter(
        request__in=requests,
        version=F("request__version"),
        counts=True,
        flags__contains=["batch"],
    )
    places = votes.values_list("request", "authority__batch", "authority__position")
    return {pk: BatchPlace(batch, position) for pk, batch, position in places}


def build_waiting_condition() -> Q:
    """Condition: the batch is halted, or an earlier execution of it is unfinished."""
    ahead = Execution.objects.filter(
        batch=OuterRef("batch"),
        batch_position__lt=OuterRef("batch_position"),
        status__in=IN_FLIGHT,
    )
    halted = Q(batch__halted_at__isnull=False)
    return Q(batch__stop_at_failure=True) & (halted | Q(Exists(ahead)))


def must_wait(execution: Execution) -> bool:
    """Whether this execution has to wait for others of its batch. One statement, so
    that it sees a consistent state of the batch."""
    if execution.batch_id is None:
        return False
    return Execution.objects.filter(build_waiting_condition(), pk=execution.pk).exists()


def is_batch_halted(execution: Execution) -> bool:
    """Whether a failure halted the execution's batch, until a person resumes it."""
    if execution.batch_id is None:
        return False
    batches = Batch.objects.filter(pk=execution.batch_id, stop_at_failure=True)
    return batches.filter(halted_at__isnull=False).exists()


def halt_batch(execution: Execution, now: datetime) -> None:
    """Halt the batch of an execution that failed or whose outcome is unknown. The
    caller has written that outcome in the same transaction."""
    if execution.batch_id is None:
        return
    Batch.objects.filter(
        pk=execution.batch_id, stop_at_failure=True, halted_at__isnull=True
    ).update(halted_at=now)


def find_next_executions(execution_id: str) -> list[str]:
    """Ids (at most one) of the next execution in the batch that may start now."""
    return _NEXT.fetch_all(execution=execution_id)


def _select_next() -> QuerySet[Execution, str]:
    own = Execution.objects.filter(
        pk=Parameter("execution"), batch__stop_at_failure=True
    )
    queued = _select_queued().filter(batch__in=own.values("batch"))
    first = queued.exclude(build_waiting_condition()).order_by("batch_position")
    return first.values_list("pk", flat=True)[:1]


_NEXT = PreparedQuery(_select_next)


def _select_queued() -> QuerySet[Execution]:
    return Execution.objects.filter(status=ExecutionStatus.QUEUED, by_agent=False)

"""Whose turn it is in a batch that stops at its first failure: its executions run one
after another, in the order that was approved, and one that fails halts the rest until
a person lets them run."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from reviews.choices import ExecutionStatus
from reviews.models import Batch, Decision, Execution

UNFINISHED = (ExecutionStatus.QUEUED, ExecutionStatus.CLAIMED)


class Place(NamedTuple):
    """Where in which batch something was approved."""

    batch: str
    position: int


def places_of(requests: Collection[str]) -> dict[str, Place]:
    """The places of those that were approved in a batch, in one query; without those
    that were decided alone. The votes themselves say so."""
    if not requests:
        return {}
    votes = Decision.objects.filter(
        request__in=requests,
        version=F("request__version"),
        counts=True,
        flags__contains=["batch"],
    )
    found = votes.values_list("request", "authority__batch", "authority__position")
    return {pk: Place(batch, position) for pk, batch, position in found}


def waiting() -> Q:
    """Executions whose batch is halted, or has an earlier one that is not finished."""
    ahead = Execution.objects.filter(
        batch=OuterRef("batch"),
        batch_position__lt=OuterRef("batch_position"),
        status__in=UNFINISHED,
    )
    halted = Q(batch__halted_at__isnull=False)
    return Q(batch__stop_at_failure=True) & (halted | Q(Exists(ahead)))


def must_wait(execution: Execution) -> bool:
    """Whether it is not this execution's turn. One statement, so that what it sees of
    the others is of one moment."""
    if execution.batch_id is None:
        return False
    return Execution.objects.filter(waiting(), pk=execution.pk).exists()


def is_halted(execution: Execution) -> bool:
    """Whether its batch waits since a failure: nothing of it runs until a person lets
    the batch go on."""
    if execution.batch_id is None:
        return False
    batches = Batch.objects.filter(pk=execution.batch_id, stop_at_failure=True)
    return batches.filter(halted_at__isnull=False).exists()


def halt(execution: Execution, now: datetime) -> None:
    """One that failed, or may have, keeps those behind it from starting. Caller has
    just written that it did."""
    if execution.batch_id is None:
        return
    Batch.objects.filter(
        pk=execution.batch_id, stop_at_failure=True, halted_at__isnull=True
    ).update(halted_at=now)


def after(execution_id: str) -> list[str]:
    """The execution that may start now that this one is over."""
    mine = Execution.objects.filter(pk=execution_id, batch__stop_at_failure=True)
    queued = _queued().filter(batch__in=mine.values("batch"))
    first = queued.exclude(waiting()).order_by("batch_position")
    return list(first.values_list("pk", flat=True)[:1])


def _queued() -> QuerySet[Execution]:
    return Execution.objects.filter(status=ExecutionStatus.QUEUED, by_agent=False)

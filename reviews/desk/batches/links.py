"""Which batch a request waits in, for its own page and its row in the queue."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count
from django.urls import reverse

from policies.documents import ToolDefinition
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, BatchItem

from .load import LEAST, OPEN


@dataclass(frozen=True, slots=True)
class Within:
    """That a request is part of a batch which waits."""

    id: str
    url: str
    count: int


def containing(request: ApprovalRequest, definition: ToolDefinition) -> Within | None:
    """The batch a request waits in; one query, and none for what never batches."""
    if definition.batchable is None or request.status != RequestStatus.PENDING:
        return None
    return of_many([request.pk]).get(request.pk)


def of_many(requests: Collection[str]) -> dict[str, Within]:
    """The batches that these requests wait in, by request, in one query however many
    there are. One that is alone in its batch is in none."""
    mine = BatchItem.objects.filter(
        request__in=requests, left_at__isnull=True, batch__status__in=OPEN
    )
    rows = (
        BatchItem.objects.filter(
            batch__in=mine.values("batch"),
            left_at__isnull=True,
            request__status=RequestStatus.PENDING,
        )
        .values("batch")
        .annotate(count=Count("pk"), members=ArrayAgg("request"))
        .filter(count__gte=LEAST)
        .order_by()
    )
    return {
        request: _within(row["batch"], row["count"])
        for row in rows
        for request in row["members"]
        if request in requests
    }


def _within(batch: str, count: int) -> Within:
    return Within(batch, reverse("reviews:batch", args=[batch]), count)

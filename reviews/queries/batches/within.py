"""Which batch a request waits in, for its own page and its row in the queue."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q
from django.urls import reverse

from policies.documents import ToolDefinition
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, BatchItem

from .loaded import OPEN


@dataclass(frozen=True, slots=True)
class Within:
    """That a request is part of a batch, for its own page."""

    id: str
    url: str
    count: int


def containing(request: ApprovalRequest, definition: ToolDefinition) -> Within | None:
    """The batch a request waits in; one query, and none for what never batches."""
    if definition.batchable is None or request.status != RequestStatus.PENDING:
        return None
    item = (
        BatchItem.objects.filter(
            request=request, left_at__isnull=True, batch__status__in=OPEN
        )
        .annotate(
            members=Count(
                "batch__items",
                filter=Q(
                    batch__items__left_at__isnull=True,
                    batch__items__request__status=RequestStatus.PENDING,
                ),
            )
        )
        .first()
    )
    if item is None or item.members < 2:
        return None
    url = reverse("reviews:batch", args=[item.batch_id])
    return Within(item.batch_id, url, item.members)

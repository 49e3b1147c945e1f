"""The batch that a request waits in, for its own page and its row in the queue; and how
a batch is titled, in the policy's words and our figures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count
from django.urls import reverse

from policies.documents import ToolDefinition
from policies.money import Money
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, BatchItem
from reviews.presenters.current import format_money
from reviews.presenters.shapes import SentencePart, TextPart, ValuePart

from .costs import BatchCost
from .load import MIN_MEMBERS, OPEN_STATUSES


@dataclass(frozen=True, slots=True)
class BatchLink:
    """A link to the open batch that a request is part of."""

    id: str
    url: str
    count: int


def find_batch_link(
    request: ApprovalRequest, definition: ToolDefinition
) -> BatchLink | None:
    """Find the batch that a request waits in. One query, none for a tool that never
    batches."""
    if definition.batchable is None or request.status != RequestStatus.PENDING:
        return None
    return list_batch_links([request.pk]).get(request.pk)


def list_batch_links(requests: Collection[str]) -> dict[str, BatchLink]:
    """List the batches that these requests wait in, by request.

    One query for any number of requests. A request that is alone in its batch is left
    out.
    """
    mine = BatchItem.objects.filter(
        request__in=requests, left_at__isnull=True, batch__status__in=OPEN_STATUSES
    )
    rows = (
        BatchItem.objects.filter(
            batch__in=mine.values("batch"),
            left_at__isnull=True,
            request__status=RequestStatus.PENDING,
        )
        .values("batch")
        .annotate(count=Count("pk"), members=ArrayAgg("request"))
        .filter(count__gte=MIN_MEMBERS)
        .order_by()
    )
    return {
        request: _build_link(row["batch"], row["count"])
        for row in rows
        for request in row["members"]
        if request in requests
    }


def _build_link(batch: str, count: int) -> BatchLink:
    return BatchLink(batch, reverse("reviews:batch", args=[batch]), count)


def build_batch_title(
    definition: ToolDefinition,
    count: int,
    total: Money | None,
    largest: Money | None,
    costs: Sequence[BatchCost] = (),
) -> tuple[SentencePart, ...]:
    """Build the sentence that says what the batch as a whole does."""
    parts: list[SentencePart] = [TextPart(f"{definition.title}: ")]
    parts.append(ValuePart(format_request_count(definition, count), untrusted=False))
    if total is not None:
        parts += [
            TextPart(", "),
            ValuePart(format_money(total), untrusted=False),
            TextPart(" in all"),
        ]
    if largest is not None:
        parts += [
            TextPart(", largest "),
            ValuePart(format_money(largest), untrusted=False),
        ]
    for cost in costs:
        label = cost.label[:1].lower() + cost.label[1:]
        parts += [TextPart(f", {label} "), ValuePart(cost.said, untrusted=False)]
        known = f" (known of {cost.known})" if cost.known < count else ""
        parts.append(TextPart(f" in all{known}"))
    return tuple(parts)


def format_request_count(definition: ToolDefinition, count: int) -> str:
    """Format a count with the tool's own noun: `37 refunds`."""
    batch = definition.batchable
    many = batch.called if batch else "requests"
    return f"{count} {many.removesuffix('s') if count == 1 else many}"

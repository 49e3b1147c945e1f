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
from reviews.presenters.current import figure
from reviews.presenters.shapes import Part, Text, Value

from .costs import Cost
from .load import LEAST, OPEN


@dataclass(frozen=True, slots=True)
class Within:
    """A link to the open batch that a request is part of."""

    id: str
    url: str
    count: int


def containing(request: ApprovalRequest, definition: ToolDefinition) -> Within | None:
    """Find the batch that a request waits in. One query, none for a tool that never
    batches."""
    if definition.batchable is None or request.status != RequestStatus.PENDING:
        return None
    return of_many([request.pk]).get(request.pk)


def of_many(requests: Collection[str]) -> dict[str, Within]:
    """List the batches that these requests wait in, by request.

    One query for any number of requests. A request that is alone in its batch is left
    out.
    """
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


def title(
    definition: ToolDefinition,
    count: int,
    total: Money | None,
    largest: Money | None,
    costs: Sequence[Cost] = (),
) -> tuple[Part, ...]:
    """Build the sentence that says what the batch as a whole does."""
    parts: list[Part] = [Text(f"{definition.title}: ")]
    parts.append(Value(called(definition, count), untrusted=False))
    if total is not None:
        parts += [Text(", "), Value(figure(total), untrusted=False), Text(" in all")]
    if largest is not None:
        parts += [Text(", largest "), Value(figure(largest), untrusted=False)]
    for cost in costs:
        label = cost.label[:1].lower() + cost.label[1:]
        parts += [Text(f", {label} "), Value(cost.said, untrusted=False)]
        known = f" (known of {cost.known})" if cost.known < count else ""
        parts.append(Text(f" in all{known}"))
    return tuple(parts)


def called(definition: ToolDefinition, count: int) -> str:
    """Format a count with the tool's own noun: `37 refunds`."""
    batch = definition.batchable
    many = batch.called if batch else "requests"
    return f"{count} {many.removesuffix('s') if count == 1 else many}"

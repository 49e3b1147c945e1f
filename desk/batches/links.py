"""The batch that a request waits in, for its own page and its row in the queue: its
title, in the policy's words and our figures, and what the batch costs in all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count
from django.urls import reverse

from policies import facts, tools
from policies.documents import ToolDefinition
from policies.money import Money, format_money
from reviews.choices import RequestStatus
from reviews.effects import describe
from reviews.governance import readings
from reviews.models import Batch, BatchItem, Revision
from reviews.presenters.shapes import SentencePart, TextPart, ValuePart

from .columns import format_policy_label
from .load import MIN_MEMBERS, OPEN_STATUSES


@dataclass(frozen=True, slots=True)
class BatchLink:
    id: str
    url: str
    count: int


def list_batch_links(requests: Collection[str]) -> dict[str, BatchLink]:
    """List the batches that these requests wait in, by request.

    One query for any number of requests. A request that is alone in its batch is left
    out.
    """
    items = BatchItem.objects.filter(
        request__in=requests, left_at__isnull=True, batch__status__in=OPEN_STATUSES
    )
    rows = (
        BatchItem.objects.filter(
            batch__in=items.values("batch"),
            left_at__isnull=True,
            request__status=RequestStatus.PENDING,
        )
        .values("batch")
        .annotate(count=Count("pk"), members=ArrayAgg("request"))
        .filter(count__gte=MIN_MEMBERS)
        .order_by()
    )
    return {
        request: BatchLink(
            row["batch"], reverse("reviews:batch", args=[row["batch"]]), row["count"]
        )
        for row in rows
        for request in row["members"]
        if request in requests
    }


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
            TextPart(" in total"),
        ]
    if largest is not None:
        parts += [
            TextPart(", largest "),
            ValuePart(format_money(largest), untrusted=False),
        ]
    for cost in costs:
        label = cost.label[:1].lower() + cost.label[1:]
        parts += [TextPart(f", {label} "), ValuePart(cost.said, untrusted=False)]
        known = f" (known for {cost.known})" if cost.known < count else ""
        parts.append(TextPart(f" in total{known}"))
    return tuple(parts)


def format_request_count(definition: ToolDefinition, count: int) -> str:
    """Format a count with the tool's own noun: `37 refunds`."""
    batch = definition.batchable
    many = batch.called if batch else "requests"
    return f"{count} {many.removesuffix('s') if count == 1 else many}"


@dataclass(frozen=True, slots=True)
class BatchCost:
    """The sum of one fact, for each currency that occurs."""

    label: str  # from the policy
    amounts: Sequence[Money]
    known: int  # number of members with this fact

    @property
    def said(self) -> str:
        """The sums as text, joined with `and`."""
        return " and ".join(map(format_money, self.amounts))


def sum_costs(definition: ToolDefinition, read: Iterable[Any]) -> list[BatchCost]:
    """Sum the costs. `read` has the reader's facts of each member."""
    members = [reading if isinstance(reading, Mapping) else {} for reading in read]
    costs = []
    for name in definition.cost_facts:
        amounts = [
            money for member in members if (money := describe.parse_cost(member, name))
        ]
        if amounts:
            sums = _sum_by_currency(amounts)
            costs.append(
                BatchCost(format_policy_label(definition, name), sums, len(amounts))
            )
    return costs


def _sum_by_currency(amounts: Iterable[Money]) -> list[Money]:
    sums: dict[str, int] = {}
    for amount in amounts:
        sums[amount.currency] = sums.get(amount.currency, 0) + amount.minor
    return [Money(minor, currency) for currency, minor in sorted(sums.items())]


def load_costs_by_batch(
    batches: Iterable[Batch], members: Mapping[str, Sequence[int]]
) -> dict[str, list[BatchCost]]:
    """Sum the costs of several batches, by batch id.

    Two queries, or none when no reader reports costs. `members` maps a batch to its
    revisions.
    """
    defined = {batch.pk: tools.load_definition(batch.tool) for batch in batches}
    asked = [pk for pk in members if defined[pk].cost_facts]
    read = _load_facts({revision for pk in asked for revision in members[pk]})
    return {pk: sum_costs(defined[pk], map(read.get, members[pk])) for pk in asked}


def _load_facts(revisions: Collection[int]) -> dict[int, Any]:
    if not revisions:
        return {}
    rows = list(Revision.objects.filter(pk__in=revisions).only("facts"))
    facts_by_revision = {revision.pk: revision.facts.get("before") for revision in rows}
    for pk, newer in readings.list_newest_by_revision(rows).items():
        if newer.reading.get("facts"):
            facts_by_revision[pk] = facts.parse_reader_facts(newer.reading["facts"])
    return facts_by_revision

"""What a batch is called: in the policy's own words and with our own figures."""

from __future__ import annotations

from collections.abc import Sequence

from policies.documents import ToolDefinition
from policies.money import Money
from reviews.desk.batches.costs import Cost
from reviews.presenters.current import figure
from reviews.presenters.shapes import Part, Text, Value


def title(
    definition: ToolDefinition,
    count: int,
    total: Money | None,
    largest: Money | None,
    costs: Sequence[Cost] = (),
) -> tuple[Part, ...]:
    """What the batch as a whole does, in the policy's own words and our figures."""
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
    """`37 refunds`."""
    batch = definition.batchable
    many = batch.called if batch else "requests"
    return f"{count} {many.removesuffix('s') if count == 1 else many}"

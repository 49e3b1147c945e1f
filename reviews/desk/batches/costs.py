"""What the members of a batch cost together, where the call itself moves no amount.

Applies to a tool that costs money and whose reader reports the cost of each member.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policies import facts, tools
from policies.documents import ToolDefinition
from policies.money import Money
from reviews.governance import readings
from reviews.models import Batch, Revision
from reviews.presenters.current import format_money

from .columns import format_policy_label


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


def list_cost_facts(definition: ToolDefinition) -> list[str]:
    """List the facts that can be a member's cost: those that the policy shows for each
    member. Empty when the call itself moves an amount."""
    if definition.moves_money or not definition.profile.monetary:
        return []
    return list(definition.review.columns)


def sum_costs(definition: ToolDefinition, read: Iterable[Any]) -> list[BatchCost]:
    """Sum the costs. `read` holds the reader's facts of each member, as rules see
    them."""
    members = [one if isinstance(one, Mapping) else {} for one in read]
    found = []
    for name in list_cost_facts(definition):
        amounts = [money for one in members if (money := _parse_amount(one, name))]
        if amounts:
            sums = _sum_by_currency(amounts)
            found.append(
                BatchCost(format_policy_label(definition, name), sums, len(amounts))
            )
    return found


def _parse_amount(read: Mapping[str, Any], name: str) -> Money | None:
    value, currency = read.get(name), read.get(f"{name}_currency")
    if not isinstance(value, int) or isinstance(value, bool) or not currency:
        return None
    return Money(value, str(currency))


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
    defined = {one.pk: tools.load_definition(one.tool) for one in batches}
    asked = [pk for pk in members if list_cost_facts(defined[pk])]
    read = _load_facts({revision for pk in asked for revision in members[pk]})
    return {pk: sum_costs(defined[pk], map(read.get, members[pk])) for pk in asked}


def _load_facts(revisions: Collection[int]) -> dict[int, Any]:
    """The readers' newest facts, by revision."""
    if not revisions:
        return {}
    rows = list(Revision.objects.filter(pk__in=revisions).only("facts"))
    found = {one.pk: one.facts.get("before") for one in rows}
    for pk, newer in readings.list_newest_by_revision(rows).items():
        if newer.reading.get("facts"):
            found[pk] = facts.parse_reader_facts(newer.reading["facts"])
    return found

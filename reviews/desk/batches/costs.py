"""What the members of a batch cost together where the call moves no amount of its own:
their tool costs money, and its reader says of each how much."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policies import facts, tools
from policies.documents import ToolDefinition
from policies.money import Money
from reviews.governance import readings
from reviews.models import Batch, Revision
from reviews.presenters.current import figure

from .columns import plain_label


@dataclass(frozen=True, slots=True)
class Cost:
    """The sum of one fact, in each currency in which it was read."""

    label: str  # the policy's
    amounts: Sequence[Money]
    known: int  # of how many members

    @property
    def said(self) -> str:
        return " and ".join(map(figure, self.amounts))


def names(definition: ToolDefinition) -> list[str]:
    """The facts that may be what a member costs: those that the policy shows of each
    member. None where the call itself says what it moves."""
    if definition.moves_money or not definition.profile.monetary:
        return []
    return list(definition.review.columns)


def total(definition: ToolDefinition, read: Iterable[Any]) -> list[Cost]:
    """`read`: of each member the facts of the reader, as rules see them."""
    members = [one if isinstance(one, Mapping) else {} for one in read]
    found = []
    for name in names(definition):
        amounts = [money for one in members if (money := _amount(one, name))]
        if amounts:
            sums = _by_currency(amounts)
            found.append(Cost(plain_label(definition, name), sums, len(amounts)))
    return found


def _amount(read: Mapping[str, Any], name: str) -> Money | None:
    value, currency = read.get(name), read.get(f"{name}_currency")
    if not isinstance(value, int) or isinstance(value, bool) or not currency:
        return None
    return Money(value, str(currency))


def _by_currency(amounts: Iterable[Money]) -> list[Money]:
    sums: dict[str, int] = {}
    for amount in amounts:
        sums[amount.currency] = sums.get(amount.currency, 0) + amount.minor
    return [Money(minor, currency) for currency, minor in sorted(sums.items())]


def of_many(
    batches: Iterable[Batch], members: Mapping[str, Sequence[int]]
) -> dict[str, list[Cost]]:
    """The same for a list, by batch, in two queries, and in none where no reader says
    what members cost. `members` are the revisions in each."""
    defined = {one.pk: tools.definition(one.tool) for one in batches}
    asked = [pk for pk in members if names(defined[pk])]
    read = _read({revision for pk in asked for revision in members[pk]})
    return {pk: total(defined[pk], map(read.get, members[pk])) for pk in asked}


def _read(revisions: Collection[int]) -> dict[int, Any]:
    """What the readers said last, by revision."""
    if not revisions:
        return {}
    rows = list(Revision.objects.filter(pk__in=revisions).only("facts"))
    found = {one.pk: one.facts.get("before") for one in rows}
    for pk, newer in readings.newest_of(rows).items():
        if newer.reading.get("facts"):
            found[pk] = facts.as_read(newer.reading["facts"])
    return found

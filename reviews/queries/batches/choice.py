"""What of a batch a decision would be on: the list, its digest, its sum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from policies.documents import ToolDefinition
from policies.money import Money
from reviews.batches import similarity
from reviews.desk.batches import costs
from reviews.desk.batches.columns import Line
from reviews.desk.batches.costs import Cost
from reviews.desk.batches.load import Loaded
from reviews.desk.components.choice import too_few
from reviews.presenters.current import figure

from .table import total_of
from .titles import called


@dataclass(frozen=True, slots=True)
class Selection:
    """What a page sent: which rows are in, which were opened, what it had shown.
    Without `made` nothing was chosen yet, and everything is in."""

    items: frozenset[str] = frozenset()
    made: bool = False
    opened: tuple[str, ...] = ()
    open_now: tuple[str, ...] = ()
    changed: Mapping[str, str] = field(default_factory=dict)
    page: str = ""  # the token of the page that sent it


class Choice:
    """The rows that are ticked."""

    def __init__(
        self, loaded: Loaded, selection: Selection, lines: Sequence[Line]
    ) -> None:
        self.loaded = loaded
        self.selection = selection
        self.lines = lines
        self.definition = loaded.definition

    @cached_property
    def ids(self) -> list[str]:
        """The rows that a decision is on, in the order of the batch."""
        able = self.loaded.choosable
        if not self.selection.made:
            return able
        return [pk for pk in able if pk in self.selection.items]

    @cached_property
    def left_out(self) -> list[str]:
        return [one.id for one in self.loaded.members if one.id not in self.ids]

    @cached_property
    def digest(self) -> str:
        chosen = set(self.ids)
        return similarity.digest(
            member.entry for member in self.loaded.members if member.id in chosen
        )

    @cached_property
    def total(self) -> Money | None:
        chosen = set(self.ids)
        amounts = (line.amount for line in self.lines if line.id in chosen)
        return total_of(amounts)[0]

    @property
    def total_said(self) -> str:
        """What they move or cost together; empty where nothing says so."""
        if self.total:
            return figure(self.total)
        chosen = [line for line in self.lines if line.id in set(self.ids)]
        return ", ".join(
            cost.said
            if cost.known == len(chosen)
            else f"{cost.said} for {cost.known} of them"
            for cost in costs_of(self.definition, chosen)
        )

    @property
    def too_much(self) -> str:
        """Why these are too much for one decision; empty when they are not."""
        batch = self.definition.batchable
        if not similarity.too_much(self.total, self.definition) or not batch:
            return ""
        most = figure(batch.total.money) if batch.total else ""
        return f"Together this is above {most}, the most for one batch."

    @cached_property
    def in_vain(self) -> list[str]:
        """Of these whom too few people could decide once they are escalated, and whom
        that lacks."""
        lacking = (self.loaded.lacking(pk) for pk in self.ids)
        return [one for one in lacking if one]

    @property
    def why_not_escalate(self) -> str:
        """What the page says of it; empty when all of these can be."""
        if not self.in_vain:
            return ""
        many, of = len(self.in_vain), len(self.ids)
        which = "These" if many == of else f"{many} of these"
        return f"{which} cannot be escalated: {too_few(self.in_vain[0])}."

    @property
    def escalates(self) -> bool:
        """Whether that verdict would be taken on any of these."""
        return not self.ids or len(self.in_vain) < len(self.ids)

    @property
    def what(self) -> str:
        """`36 refunds, 1,788.20 USD`: what a commit repeats."""
        said = called(self.definition, len(self.ids))
        return f"{said}, {self.total_said}" if self.total_said else said


def costs_of(definition: ToolDefinition, lines: Iterable[Line]) -> list[Cost]:
    """What these cost together, as they were read."""
    read = (line.subject.facts.get("before") for line in lines)
    return costs.total(definition, read)

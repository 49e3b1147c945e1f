"""What would be proposed to undo an effect, before anybody does."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from journal.errors import DomainError, NotFound
from policies.models import Person
from reviews.desk.components import undo, visibility
from reviews.effects import describe
from reviews.executions import reversals
from reviews.models import Execution
from reviews.presenters import present
from reviews.presenters.shapes import Part


@dataclass(frozen=True, slots=True)
class ReversalPage:
    """`why_not`: why it cannot be proposed, in the operation's own words."""

    id: str
    effect: tuple[Part, ...]
    back: str
    would: tuple[Part, ...]
    tool: str
    agent: str
    thread: str
    thread_url: str
    word: str
    word_url: str
    why_not: str


def page(person: Person, pk: str, now: datetime) -> ReversalPage:
    """Raises NotFound for an effect that this person may not see."""
    mine = visibility.proposals(person).values("pk")
    rows = Execution.objects.select_related(
        "proposal__request", "grant__revision__tool"
    )
    execution = rows.filter(pk=pk, proposal__in=mine).first()
    if execution is None:
        raise NotFound
    would, tool, why_not = _would(person, execution, now)
    proposal, revision = execution.proposal, execution.grant.revision
    known = undo.of_execution(person, execution, proposal, revision.tool_id, now)
    return ReversalPage(
        id=pk,
        effect=describe.effect(revision),
        back=_back(execution),
        would=would,
        tool=tool,
        agent=proposal.agent,
        thread=proposal.thread,
        thread_url=reverse("agents:thread", args=[proposal.agent, proposal.thread]),
        word=known.word,
        word_url=known.url,
        why_not=why_not,
    )


def _would(
    person: Person, execution: Execution, now: datetime
) -> tuple[tuple[Part, ...], str, str]:
    try:
        found = reversals.of(execution.pk, person, now)
    except DomainError as error:
        return (), "", error.detail.removesuffix(" Nothing was recorded.")
    shown = present(found.definition, found.args)
    return tuple(shown.sentence), found.tool.name, ""


def _back(execution: Execution) -> str:
    request = getattr(execution.proposal, "request", None)
    if request is not None:
        return reverse("reviews:request_detail", args=[request.pk])
    run = [execution.proposal.agent, execution.proposal.thread]
    return reverse("agents:thread", args=run)

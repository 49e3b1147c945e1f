"""What people rejected and what a check refused before execution, by reason, with links
to the newest of each: an owner reads them to change the agent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.urls import reverse

from agents.representation import annotate_status
from reviews.choices import GIVEN_REASON_LABELS, Verdict
from reviews.effects import describe
from reviews.models import Decision, Execution, Revision
from reviews.presenters.shapes import SentencePart

MAX_LINKED = 3  # of each reason, the newest
MEANINGS = {
    "rejected": "rejected by people",
    "refused": "refused before execution",
}


@dataclass(frozen=True, slots=True)
class LinkedProposal:
    """A proposal by its effect; `words` are the reviewer's about a rejection."""

    url: str
    effect: Sequence[SentencePart]
    words: str


@dataclass(frozen=True, slots=True)
class RefusalGroup:
    """So many proposals that ended in the same way, for the same reason."""

    meaning: str
    label: str
    count: int
    newest: Sequence[LinkedProposal]


def list_refusals(proposals: QuerySet[Any]) -> list[RefusalGroup]:
    """Group what was rejected or refused among these proposals, the most frequent
    reasons first."""
    votes = Decision.objects.filter(
        request__proposal=OuterRef("pk"), verdict=Verdict.REJECT
    )
    executions = Execution.objects.filter(proposal=OuterRef("pk"))
    rows = (
        annotate_status(proposals)
        .filter(said__in=MEANINGS)
        .annotate(
            reason=Subquery(votes.order_by("-at").values("reason_code")[:1]),
            code=Subquery(executions.order_by("-queued_at").values("code")[:1]),
        )
        .order_by("-created_at")
        .values_list("pk", "said", "reason", "code", "repeats")
    )
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pk, word, reason, code, repeats in rows:
        groups[word, _describe_reason(reason, code, repeats)].append(pk)
    linked = load_linked([pk for ids in groups.values() for pk in ids[:MAX_LINKED]])
    return sorted(
        (
            RefusalGroup(
                MEANINGS[word],
                label,
                len(ids),
                [linked[pk] for pk in ids[:MAX_LINKED] if pk in linked],
            )
            for (word, label), ids in groups.items()
        ),
        key=lambda group: -group.count,
    )


def _describe_reason(reason: str | None, code: str | None, repeats: str) -> str:
    if repeats:
        return "The same was rejected before in its run"
    if code:
        return code.replace("_", " ").capitalize()
    return GIVEN_REASON_LABELS.get(reason or "", "No reason chosen")


def load_linked(ids: Collection[str]) -> dict[str, LinkedProposal]:
    """These proposals as links, by id: to their request's page, or to their run without
    a request. Two queries, and one for effects that are not cached."""
    votes = Decision.objects.filter(
        request__proposal=OuterRef("proposal"), verdict=Verdict.REJECT
    )
    revisions: Any = Revision.objects.filter(
        proposal__in=ids, number=F("proposal__revision")
    ).annotate(words=Subquery(votes.order_by("-at").values("reason")[:1]))
    columns = ("proposal__request__pk", "proposal__agent", "proposal__thread", "words")
    rows = list(revisions.values_list("pk", "action_hash", "proposal", *columns))
    briefs = describe.load_briefs_by_id({pk: digest for pk, digest, *_ in rows})
    return {
        proposal: LinkedProposal(
            reverse("reviews:request_detail", args=[request])
            if request
            else reverse("agents:thread", args=[agent, thread]),
            briefs[pk].effect,
            words or "",
        )
        for pk, _, proposal, request, agent, thread, words in rows
    }

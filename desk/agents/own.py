"""What an owner reads first: what their own agents asked for in a week, what came of
it, and of what did not go as asked, why: the rule's sentence, the rejection's reason,
and the arguments that a reviewer changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from agents.models import Agent
from agents.representation import annotate_status
from policies.models import Person
from reviews.choices import DECIDED
from reviews.effects.changes import ArgumentChange, list_argument_changes
from reviews.models import Proposal, Revision

from ..components import visibility
from . import steps
from .figures import FAILED_WORDS, REFUSED_WORDS, Median
from .steps import ProposalRow

PERIOD = timedelta(days=7)
MAX_COUNTED = 5000  # the newest proposals of the period
MAX_SHOWN = 12
GRANTED_WORDS = ("granted", "executing", "executed")
BY_PERSON = "person"
_NOT_AS_ASKED = Q(said__in=(*REFUSED_WORDS, *FAILED_WORDS, "expired")) | Q(edited=True)


@dataclass(frozen=True, slots=True)
class OwnRow:
    """A proposal that did not go as asked, with what a reviewer changed in it."""

    step: ProposalRow
    changes: Sequence[ArgumentChange]


@dataclass(frozen=True, slots=True)
class OwnAgents:
    """The week of all agents of one owner. `edited` are proposals whose arguments a
    reviewer changed; `median` is how long decided requests waited."""

    proposed: int
    granted: int
    refused: int
    failed: int
    expired: int
    pending: int
    edited: int
    median: timedelta | None
    rows: Sequence[OwnRow]

    @property
    def is_all(self) -> bool:
        """Whether the week has no more proposals than were counted."""
        return self.proposed < MAX_COUNTED


def build_own_agents(person: Person, now: datetime) -> OwnAgents | None:
    """Build the week of this person's own agents, in a bounded number of queries; None
    for somebody who owns none."""
    slugs = list(Agent.objects.filter(owner=person).values_list("slug", flat=True))
    if not slugs:
        return None
    since = now - PERIOD
    proposals = _select_week(person, slugs, since)
    counts, edited = _count_outcomes(proposals)
    wrong = proposals.filter(_NOT_AS_ASKED).order_by("-created_at")[:MAX_SHOWN]
    lines = steps.list_proposal_rows(person, wrong, now)
    changes = load_changes([line.proposal for line in lines])
    return OwnAgents(
        proposed=sum(counts.values()),
        granted=_add(counts, GRANTED_WORDS),
        refused=_add(counts, REFUSED_WORDS),
        failed=_add(counts, FAILED_WORDS),
        expired=counts.get("expired", 0),
        pending=counts.get("pending", 0),
        edited=edited,
        median=_compute_median(proposals),
        rows=[OwnRow(line, changes.get(line.proposal.pk, [])) for line in lines],
    )


def _select_week(person: Person, slugs: list[str], since: datetime) -> QuerySet[Any]:
    """The newest proposals of the week, with `said` and `edited` annotated."""
    visible = visibility.select_visible_proposals(person)
    week = visible.filter(agent__in=slugs, created_at__gt=since, canary=False)
    by_person = Revision.objects.filter(
        proposal=OuterRef("pk"), number__gt=1, author_kind=BY_PERSON
    )
    newest = visibility.select_newest(week, MAX_COUNTED)
    rows: QuerySet[Any] = annotate_status(newest).annotate(edited=Exists(by_person))
    return rows


def _count_outcomes(proposals: QuerySet[Any]) -> tuple[dict[str, int], int]:
    counts, edited = dict[str, int](), 0
    rows = proposals.values_list("said", "edited").annotate(n=Count("pk")).order_by()
    for word, changed, n in rows:
        counts[word] = counts.get(word, 0) + n
        edited += n if changed else 0
    return counts, edited


def _add(counts: dict[str, int], words: Iterable[str]) -> int:
    return sum(counts.get(word, 0) for word in words)


def _compute_median(proposals: QuerySet[Any]) -> timedelta | None:
    waited = Median(F("request__settled_at") - F("request__opened_at"))
    decided = proposals.filter(request__status__in=DECIDED)
    median: timedelta | None = decided.aggregate(median=waited)["median"]
    return median


def load_changes(
    proposals: Iterable[Proposal],
) -> dict[str, list[ArgumentChange]]:
    """What people changed in these proposals since the agent's last words, in one
    query. What the retention rule removed cannot be compared."""
    ids = [proposal.pk for proposal in proposals if proposal.revision > 1]
    revisions = Revision.objects.filter(proposal__in=ids, removed_after__isnull=True)
    chains: dict[str, list[Revision]] = {}
    for revision in revisions.select_related("tool").order_by("proposal", "number"):
        chains.setdefault(revision.proposal_id, []).append(revision)
    return {pk: _list_changes(chain) for pk, chain in chains.items()}


def _list_changes(chain: Sequence[Revision]) -> list[ArgumentChange]:
    """Compare the newest revision, if a person wrote it, with the agent's last one."""
    after = chain[-1]
    before = [one for one in chain[:-1] if one.author_kind != BY_PERSON]
    if after.author_kind != BY_PERSON or not before:
        return []
    return list_argument_changes(before[-1], after)

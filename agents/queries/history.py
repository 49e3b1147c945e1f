"""What went wrong with an agent lately: failures, refusals, rejections, blocks, lost
outcomes and near misses, as they were recorded."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from agents.desk import steps
from agents.desk.steps import Step
from agents.representation import with_status
from policies.models import Person
from reviews.models import Proposal, Sighting

LATELY = timedelta(days=30)
# Of no more of its proposals than this, the newest: any agent's page costs the same.
MOST_READ = 1000
SHOWN = 15
WRONG = {
    "failed": "failed",
    "unknown": "outcome unknown",
    "refused": "refused before the effect",
    "rejected": "rejected by people",
    "blocked": "blocked by the policy",
}


@dataclass(frozen=True, slots=True)
class History:
    """`read`: how many proposals were looked at; `near_misses` among them."""

    read: int = 0
    figures: list[tuple[str, int]] = field(default_factory=list)
    near_misses: int = 0
    newest: list[Step] = field(default_factory=list)

    @property
    def is_all(self) -> bool:
        return self.read < MOST_READ


def lately(person: Person, mine: QuerySet[Proposal], now: datetime) -> History:
    """Of these proposals. Two queries, and those of the newest that went wrong."""
    newest = mine.filter(created_at__gt=now - LATELY).order_by("-created_at")
    found = _with_outcome(
        Proposal.objects.filter(pk__in=newest.values("pk")[:MOST_READ])
    )
    rows = list(
        found.values_list("said", "near_miss").annotate(n=Count("pk")).order_by()
    )
    counts: dict[str, int] = {}
    for said, _, n in rows:
        counts[said] = counts.get(said, 0) + n
    wrong = found.filter(Q(said__in=WRONG) | Q(near_miss=True)).order_by("-created_at")
    return History(
        read=sum(counts.values()),
        figures=[(WRONG[one], counts[one]) for one in WRONG if one in counts],
        near_misses=sum(n for _, missed, n in rows if missed),
        newest=steps.read(person, wrong[:SHOWN], now),
    )


def _with_outcome(found: QuerySet[Proposal]) -> QuerySet[Any]:
    missed = Sighting.objects.filter(execution__proposal=OuterRef("pk"), near_miss=True)
    rows: QuerySet[Any] = with_status(found).annotate(near_miss=Exists(missed))
    return rows

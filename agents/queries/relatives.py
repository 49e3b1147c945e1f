"""Runs that a run started, and the one that started it: proposals name a `parent`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min, Q, QuerySet
from django.urls import reverse

from policies.models import Person
from reviews.desk.components import visibility
from reviews.models import Proposal

MOST = 20


@dataclass(frozen=True, slots=True)
class Relative:
    """Another run. `proposals`: how many of its proposals name this run, or this run
    names of it."""

    agent: str
    thread: str
    since: datetime
    proposals: int

    @property
    def url(self) -> str:
        return reverse("agents:thread", args=[self.agent, self.thread])


def children(person: Person, agent: str, thread: str) -> list[Relative]:
    """Runs whose proposals name one of this run's as what they are part of."""
    own = Proposal.objects.filter(agent=agent, thread=thread).values("pk")
    # The first condition is the partial index's own.
    found = visibility.proposals(person).exclude(parent="").filter(parent__in=own)
    return _runs(found, agent, thread)


def parents(person: Person, agent: str, thread: str) -> list[Relative]:
    """Runs of which this one's proposals are a part."""
    named = Proposal.objects.filter(agent=agent, thread=thread).exclude(parent="")
    found = visibility.proposals(person).filter(pk__in=named.values("parent"))
    return _runs(found, agent, thread)


def _runs(found: QuerySet[Proposal], agent: str, thread: str) -> list[Relative]:
    runs = (
        found.exclude(Q(agent=agent) & Q(thread=thread))
        .values_list("agent", "thread")
        .annotate(since=Min("created_at"), n=Count("pk", distinct=True))
        .order_by("since")
    )
    return [Relative(*one) for one in runs[:MOST]]

"""The copy of the page that is kept with a decision: its own, or of a batch the one
that is kept for all, with the first; and who may open it."""

from __future__ import annotations

from django.db.models import Q, QuerySet
from django.urls import reverse

from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.choices import OPEN
from reviews.models import Decision, Snapshot

from . import visibility


def of(decision: Decision) -> Snapshot | None:
    """None where a program decided."""
    if batch := decision.authority.get("batch"):
        return of_batch(batch)
    return Snapshot.objects.filter(decision=decision).first()


def of_batch(batch: str) -> Snapshot | None:
    """A batch is decided once, so there is one."""
    found = Snapshot.objects.filter(
        decision__request__batch_items__batch=batch, decision__authority__batch=batch
    )
    return found.select_related("decision__reviewer").first()


def url(decision: Decision) -> str:
    """Where the page of a decision is opened."""
    return reverse("reviews:as_seen", args=[decision.request_id, decision.pk])


def openable(person: Person) -> QuerySet[Decision]:
    """The decisions whose page this person may open: their own; others' by role, and
    for who may still decide only when blindness is over."""
    roles = permissions.roles_of(person)
    found = Decision.objects.filter(request__in=visibility.requests(person))
    if Role.AUDITOR in roles:
        return found
    settled = Q(reviewer=person)
    if Role.SUPERVISOR in roles:
        settled |= ~Q(request__status__in=OPEN)
    return found.filter(settled)

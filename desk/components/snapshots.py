"""The page stored with a decision, links to it, and who may open it.

The decisions of a batch share one stored page, kept with the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.urls import reverse

from journal.clock import format_time
from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.choices import OPEN, VERDICT_SPECS, Verdict
from reviews.models import ApprovalRequest, Decision, Snapshot

from . import snapshots, visibility


def find_snapshot(decision: Decision) -> Snapshot | None:
    """The stored page of a decision; None where a program decided through the API."""
    if batch := decision.authority.get("batch"):
        return find_batch_snapshot(batch)
    return Snapshot.objects.filter(decision=decision).first()


def find_batch_snapshot(batch: str) -> Snapshot | None:
    """The stored page of a decided batch; a batch is decided once."""
    snapshots = Snapshot.objects.filter(
        decision__request__batch_items__batch=batch, decision__authority__batch=batch
    )
    return snapshots.select_related("decision__reviewer").first()


def build_snapshot_url(decision: Decision) -> str:
    return reverse("reviews:as_seen", args=[decision.request_id, decision.pk])


def select_openable_decisions(person: Person) -> QuerySet[Decision]:
    """Decisions whose stored page this person may open: their own; all for auditors;
    for supervisors others' once the request is settled, when reviewers are no longer
    blind."""
    roles = permissions.roles_of(person)
    decisions = Decision.objects.filter(
        request__in=visibility.select_visible_requests(person)
    )
    if Role.AUDITOR in roles:
        return decisions
    settled = Q(reviewer=person)
    if Role.SUPERVISOR in roles:
        settled |= ~Q(request__status__in=OPEN)
    return decisions.filter(settled)


@dataclass(frozen=True, slots=True)
class EvidenceLink:
    text: str
    url: str


def list_evidence_links(
    person: Person, request: ApprovalRequest, decisions: Iterable[Decision]
) -> list[EvidenceLink]:
    """Links for those of these decisions whose stored page this person may open. The
    decisions must already be limited to what the person may read."""
    roles = permissions.roles_of(person)
    settled = Role.SUPERVISOR in roles and request.status not in OPEN
    every = settled or Role.AUDITOR in roles
    openable = (
        decision for decision in decisions if every or decision.reviewer_id == person.pk
    )
    return [
        EvidenceLink(
            _describe_decision(decision), snapshots.build_snapshot_url(decision)
        )
        for decision in openable
    ]


def _describe_decision(decision: Decision) -> str:
    verdict = VERDICT_SPECS[Verdict(decision.verdict)].past
    return f"{verdict} at {format_time(decision.at)}, version {decision.version}"

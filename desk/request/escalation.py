"""What a supervisor sees of an escalation: who escalated, why, and which way they
lean."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from journal.models import LogRecord
from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.choices import GIVEN_REASON_LABELS, NoteKind, Verdict
from reviews.models import Decision, Note
from reviews.requests.versions import ESCALATION_CAUSES

from ..components import holding
from .load import LoadedRequest

LEANING_WORDS = {"leans_approve": "would approve it", "leans_reject": "would reject it"}


@dataclass(frozen=True, slots=True)
class EscalationPanel:
    """The panel above the review page of an escalated request."""

    who: str
    by_verifier: bool
    at: datetime
    reason: str
    note: str
    waited: timedelta
    read_for: timedelta | None
    leaning: str  # empty until the supervisor asks for it
    has_leaning: bool
    answer_by: datetime | None  # None while an incident freezes deadlines
    may_return: bool
    people: QuerySet[Person]


def build_escalation_panel(loaded: LoadedRequest) -> EscalationPanel | None:
    """The panel for a supervisor of the queue; None unless the request was escalated
    and still waits."""
    sealed, request = loaded.sealed, loaded.request
    handed_up = sealed.cause in ESCALATION_CAUSES or sealed.escalated_by
    if not (loaded.waiting and handed_up and _may_supervise(loaded)):
        return None
    votes = Decision.objects.filter(request=request, verdict=Verdict.ESCALATE)
    vote = votes.select_related("reviewer").order_by("at").last()
    at = vote.at if vote else sealed.created_at
    leaning = (
        next((LEANING_WORDS[f] for f in vote.flags if f in LEANING_WORDS), "")
        if vote
        else ""
    )
    return EscalationPanel(
        who=str(vote.reviewer) if vote else "",
        by_verifier=vote is None or sealed.cause == "verifier",
        at=at,
        reason=GIVEN_REASON_LABELS.get(vote.reason_code, "") if vote else "",
        note=vote.reason if vote else "",
        waited=at - request.opened_at,
        read_for=timedelta(milliseconds=vote.took_ms)
        if vote and vote.took_ms
        else None,
        leaning=leaning if leaning and _was_leaning_shown(loaded) else "",
        has_leaning=bool(leaning),
        answer_by=None if request.frozen_through else request.expires_at,
        may_return=not loaded.holding.by,
        people=holding.select_eligible_people(request, sealed).exclude(
            pk=loaded.person.pk
        ),
    )


def _may_supervise(loaded: LoadedRequest) -> bool:
    """The rule of `decisions.returns`, as a predicate."""
    person, request = loaded.person, loaded.request
    return (
        permissions.find_deciding_role(person) is Role.SUPERVISOR
        and request.queue_id in permissions.queues_of(person)
        and not request.proposal.bars(person.public_id)
    )


def _was_leaning_shown(loaded: LoadedRequest) -> bool:
    """Whether this person asked for the reviewer's view, by the log."""
    return LogRecord.objects.filter(
        kind="request.view_shown",
        proposal=loaded.request.proposal_id,
        actor_id=loaded.person.public_id,
    ).exists()


def find_guidance(loaded: LoadedRequest) -> str:
    """The guidance of the supervisor who gave the request back; empty for none."""
    if loaded.sealed.cause != "returned":
        return ""
    notes = Note.objects.filter(request=loaded.request, kind=NoteKind.GUIDANCE)
    return notes.order_by("-at").values_list("text", flat=True).first() or ""

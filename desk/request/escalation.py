"""What a supervisor sees of an escalation: who escalated, why, and which way they
lean."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.db.models import QuerySet

from journal.models import LogRecord
from notifications.on_call import duty
from policies.models import Person
from reviews.choices import GIVEN_REASON_LABELS, NoteKind, Verdict
from reviews.models import ApprovalRequest, Decision, Note
from reviews.people import preferences
from reviews.requests.versions import ESCALATION_CAUSES

from ..components import holding
from ..components.formatting import round_took
from .load import LoadedRequest

LEANING_WORDS = {"leans_approve": "would approve it", "leans_reject": "would reject it"}


@dataclass(frozen=True, slots=True)
class EscalationPanel:
    """The panel above the review page of an escalated request."""

    who: Person | None
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
    """The panel for a supervisor; None unless it was escalated and still waits."""
    sealed, request = loaded.sealed, loaded.request
    handed_up = sealed.cause in ESCALATION_CAUSES or sealed.escalated_by
    supervises = holding.may_supervise(loaded.person, request)
    if not (loaded.waiting and handed_up and supervises):
        return None
    votes = Decision.objects.filter(request=request, verdict=Verdict.ESCALATE)
    vote = votes.select_related("reviewer").order_by("at").last()
    at = vote.at if vote else sealed.created_at
    flags, took_ms = (vote.flags, vote.took_ms) if vote else ((), None)
    leaning = next((LEANING_WORDS[flag] for flag in flags if flag in LEANING_WORDS), "")
    return EscalationPanel(
        who=vote.reviewer if vote else None,
        by_verifier=vote is None or sealed.cause == "verifier",
        at=at,
        reason=GIVEN_REASON_LABELS.get(vote.reason_code, "") if vote else "",
        note=vote.reason if vote else "",
        waited=at - request.opened_at,
        read_for=round_took(took_ms) if took_ms else None,
        leaning=leaning if leaning and _was_leaning_shown(loaded) else "",
        has_leaning=bool(leaning),
        answer_by=None if request.frozen_through else request.expires_at,
        may_return=not loaded.holding.by,
        people=holding.select_eligible_people(request, sealed).exclude(
            pk=loaded.person.pk
        ),
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


MOST_NAMES = 4  # people listed by name


def describe_supervisors(
    request: ApprovalRequest, person: Person, now: datetime
) -> str:
    """The supervisors an escalation asks, those on call first; two queries."""
    rows = holding.select_supervisors(request).exclude(pk=person.pk)
    people = list(rows.select_related("preferences").order_by("username"))
    if not people:
        return (
            "No other supervisor is admitted to this queue, so it would wait for one."
        )
    on_call = duty.select_on_call(request.queue_id, people, now)
    people.sort(key=lambda person: person.pk not in on_call)
    names = [
        f"{person} ({_format_local_time(person, now, on_call=person.pk in on_call)})"
        for person in people[:MOST_NAMES]
    ]
    if len(people) > MOST_NAMES:
        names.append(f"{len(people) - MOST_NAMES} more")
    return f"These supervisors can then decide it: {', '.join(names)}."


def _format_local_time(person: Person, now: datetime, *, on_call: bool) -> str:
    zone = preferences.load_preferences(person).notifications.zone
    local = f"local time {now.astimezone(ZoneInfo(zone)):%H:%M}"
    return f"on call, {local}" if on_call else local

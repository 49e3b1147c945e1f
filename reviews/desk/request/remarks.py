"""The notes that people wrote on a request beside their verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from reviews import permissions
from reviews.choices import OPEN, NoteKind
from reviews.desk.components.log_sentences import HIDDEN_NAME
from reviews.models import Decision, Note

from .load import LoadedRequest

KIND_LABELS = {
    NoteKind.NOTE: "Note",
    NoteKind.GUIDANCE: "Guidance",
    NoteKind.ARBITRATION: "Arbitration",
}


@dataclass(frozen=True, slots=True)
class Remark:
    """One note, to be printed as plain text."""

    what: str
    who: str
    at: datetime
    text: str


def list_remarks(loaded: LoadedRequest) -> list[Remark]:
    """The notes that this person may read, oldest first."""
    rows = _select_readable(loaded).select_related("author").order_by("at", "pk")
    return [
        Remark(
            KIND_LABELS[NoteKind(row.kind)],
            _format_author(loaded, row),
            row.at,
            row.text,
        )
        for row in rows
    ]


def _select_readable(loaded: LoadedRequest) -> QuerySet[Note]:
    """While the request is open, notes by voters are hidden from those who may still
    decide: they would reveal the vote."""
    found = Note.objects.filter(request=loaded.request)
    never = permissions.roles_of(loaded.person) & permissions.NEVER_DECIDE
    if loaded.request.status not in OPEN or never:
        return found
    voted = Decision.objects.filter(
        request=loaded.request, reviewer=OuterRef("author"), counts=True
    )
    blind = found.filter(Exists(voted), kind=NoteKind.NOTE)
    return found.exclude(pk__in=blind.exclude(author=loaded.person).values("pk"))


def _format_author(loaded: LoadedRequest, note: Note) -> str:
    person = loaded.person
    concerned = person.public_id in loaded.request.proposal.barred
    if concerned and not permissions.roles_of(person) & permissions.NEVER_DECIDE:
        return HIDDEN_NAME
    return str(note.author)


def may_add_note(loaded: LoadedRequest) -> bool:
    """Whether this person may add a note, by the rule of `drafts.add_note`."""
    decides = permissions.find_deciding_role(loaded.person) is not None
    return decides and loaded.request.queue_id in permissions.queues_of(loaded.person)

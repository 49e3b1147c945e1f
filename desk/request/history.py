"""R7 of the request page: its records so far, and what people and the agent wrote
beside the verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from django.db.models import Exists, OuterRef, QuerySet

from journal import archives
from journal.archives import ArchivedPart
from policies.models import Person
from reviews import permissions
from reviews.choices import OPEN, MessageKind, NoteKind
from reviews.models import Decision, Note

from ..components import log_lines, snapshots
from ..components.log_lines import HistoryLine
from ..components.snapshots import EvidenceLink
from .load import LoadedRequest, hide_name

# LOG_KEEP_MONTHS is at least 7.
YOUNGEST_ARCHIVED = timedelta(days=7 * 30)


@dataclass(frozen=True)
class HistoryRegion:
    """The records about a request, and the pages stored with its decisions."""

    loaded: LoadedRequest
    notices_url: str

    @cached_property
    def lines(self) -> list[HistoryLine]:
        return log_lines.build_history(self.loaded.person, self.loaded.request)

    @cached_property
    def archived(self) -> list[ArchivedPart]:
        """The parts of the log with records of this request that left the database."""
        request, now = self.loaded.request, self.loaded.now
        if request.settled_at is None or request.opened_at > now - YOUNGEST_ARCHIVED:
            return []
        since = request.proposal.created_at
        return archives.list_archived_parts(since=since, until=request.settled_at)

    @cached_property
    def stored_pages(self) -> list[EvidenceLink]:
        loaded = self.loaded
        return snapshots.list_evidence_links(
            loaded.person, loaded.request, loaded.decisions
        )


KIND_LABELS = {
    NoteKind.NOTE: "Note",
    NoteKind.GUIDANCE: "Guidance",
    NoteKind.ARBITRATION: "Arbitration",
    NoteKind.MOVE: "Why it was moved",
}
MESSAGE_LABELS = {
    MessageKind.QUESTION: "Question",
    MessageKind.ANSWER: "Answer",
    MessageKind.GUIDANCE: "Sent back for revision",
}


@dataclass(frozen=True, slots=True)
class ConversationLine:
    """One note or message, printed as plain text. `who` is empty for agents."""

    what: str
    who: Person | str
    at: datetime
    text: str
    round: int = 0  # of a message


@dataclass(frozen=True)
class Conversation:
    """The notes of people, and the messages between people and the agent."""

    loaded: LoadedRequest

    @cached_property
    def remarks(self) -> list[ConversationLine]:
        """The notes that this person may read, oldest first."""
        loaded = self.loaded
        if not loaded.remarked:
            return []
        rows = _select_readable(loaded).select_related("author").order_by("at", "pk")
        return [
            ConversationLine(
                KIND_LABELS[NoteKind(row.kind)],
                hide_name(loaded, row.author),
                row.at,
                row.text,
            )
            for row in rows
        ]

    @cached_property
    def lines(self) -> list[ConversationLine]:
        """The messages, oldest first. Nobody votes by a message, so everybody who may
        see the request reads them."""
        return [
            ConversationLine(
                MESSAGE_LABELS[MessageKind(message.kind)],
                hide_name(self.loaded, message.author) if message.author else "",
                message.at,
                message.text,
                message.round,
            )
            for message in self.loaded.dialogue.messages
        ]

    @property
    def rounds_left(self) -> int:
        """How often people may still ask or send it back."""
        return self.loaded.dialogue.count_rounds_left(by_agent=False)


def _select_readable(loaded: LoadedRequest) -> QuerySet[Note]:
    """While the request is open, notes by voters are hidden from those who may still
    decide: they would reveal the vote."""
    notes = Note.objects.filter(request=loaded.request)
    never = permissions.never_decides(loaded.person)
    if loaded.request.status not in OPEN or never:
        return notes
    voted = Decision.objects.filter(
        request=loaded.request, reviewer=OuterRef("author"), counts=True
    )
    blind = notes.filter(Exists(voted), kind=NoteKind.NOTE)
    return notes.exclude(pk__in=blind.exclude(author=loaded.person).values("pk"))


def may_add_note(loaded: LoadedRequest) -> bool:
    """Whether this person may add a note, by the rule of `drafts.add_note`."""
    decides = permissions.find_deciding_role(loaded.person) is not None
    return decides and loaded.request.queue_id in permissions.queues_of(loaded.person)

"""The rounds of a request's dialogue: what was asked, what is unanswered, and how many
rounds are left.

Every question, and every request to revise, opens a round. An answer closes the round
of its question. The guidance of a supervisor who returned an escalation counts in the
numbering, but not towards the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.conf import settings

from journal.errors import RoundsUsed
from journal.statements import Statement
from reviews.choices import MessageKind, NoteKind
from reviews.models import ApprovalRequest, Message, Note

# The guidance of escalations and the messages, oldest first. A note has no round of its
# own: it opens the next one.
_ALL_MESSAGES = Statement("""
SELECT round, kind, role, text, at FROM (
    SELECT 0 AS round, kind, 'supervisor' AS role, text, at
    FROM reviews_note WHERE request_id = %(request)s AND kind = 'guidance'
    UNION ALL
    SELECT round, kind, role, text, at
    FROM reviews_message WHERE request_id = %(request)s) AS said
ORDER BY at
""")


class SentMessage(NamedTuple):
    """A message as its agent may read it: `role` is that of a person, or empty for the
    agent's own. The text of a person is not redacted yet."""

    round: int
    kind: str
    role: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The messages of one request, oldest first, and how many notes of guidance it
    has."""

    messages: Sequence[Message]
    notes: int = 0

    @property
    def openers(self) -> list[Message]:
        """The messages that opened a round."""
        return [
            message for message in self.messages if message.kind != MessageKind.ANSWER
        ]

    @property
    def next_round(self) -> int:
        return len(self.openers) + self.notes + 1

    def list_questions(self, *, by_agent: bool) -> list[Message]:
        """The unanswered questions of one side, oldest first."""
        answered = self._list_answered()
        return [
            message
            for message in self.openers
            if message.kind == MessageKind.QUESTION
            and message.by_agent is by_agent
            and message.round not in answered
        ]

    def find_unanswered(self, round_: int, *, by_agent: bool) -> Message | None:
        """What one side said to open this round, if nobody has answered it yet."""
        if round_ in self._list_answered():
            return None
        matches = (
            message
            for message in self.openers
            if message.round == round_ and message.by_agent is by_agent
        )
        return next(matches, None)

    def count_rounds_left(self, *, by_agent: bool) -> int:
        """How many rounds one side may still open."""
        opened = sum(message.by_agent is by_agent for message in self.openers)
        return max(settings.COUNTERSEAL.dialogue_rounds - opened, 0)

    def _list_answered(self) -> set[int]:
        return {
            message.round
            for message in self.messages
            if message.kind == MessageKind.ANSWER
        }


def load_dialogue(request: ApprovalRequest) -> Dialogue:
    """Load the messages of a request with their authors, in two queries."""
    guidance = Note.objects.filter(request=request, kind=NoteKind.GUIDANCE)
    return Dialogue(list_messages(request), guidance.count())


def list_messages(request: ApprovalRequest) -> list[Message]:
    """The messages of a request with their authors, oldest first. One query."""
    messages = Message.objects.filter(request=request).select_related("author")
    return list(messages.order_by("at", "pk"))


def list_sent_messages(request: ApprovalRequest) -> list[SentMessage]:
    """Everything that was said about a request, oldest first: guidance of supervisors
    who returned its escalation, and messages. One query, and none for a request without
    either."""
    if request.version == 1 and not request.message_count:
        return []
    messages, opened = [], 0
    for row in _ALL_MESSAGES.fetch_all(request=request.pk):
        message = SentMessage(*row)
        opened += message.kind != MessageKind.ANSWER
        messages.append(message if message.round else message._replace(round=opened))
    return messages


def check_rounds_left(dialogue: Dialogue, *, by_agent: bool) -> None:
    """Raises RoundsUsed when this side has opened as many rounds as it may."""
    if dialogue.count_rounds_left(by_agent=by_agent):  # guard: rounds
        return
    most = settings.COUNTERSEAL.dialogue_rounds
    what_next = (
        "Revise the proposal, or wait for the decision."
        if by_agent
        else "Decide the request, or escalate it."
    )
    raise RoundsUsed(
        f"All {most} rounds of this request are used. Nothing was sent. {what_next}"
    )

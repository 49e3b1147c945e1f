"""R8 of the request page while the person can decide: the verdicts and messages that
they may give, what an approval asks for, and what they typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from policies import tools
from reviews import permissions
from reviews.attention_checks.written_questions import WrittenQuestion
from reviews.choices import REVERSAL_SOURCE, RequestStatus, Verdict
from reviews.decisions import drafts
from reviews.standing_grants import issuance

from ..batches import links
from ..batches.links import BatchLink
from ..components import choice, holding
from ..components.choice import VERDICT_WORDINGS, VerdictChoice
from . import attention, history, messages, reading_time
from .attention import SentAnswers
from .load import LoadedRequest
from .messages import PanelButton
from .regions import RenderedRegions


@dataclass(frozen=True, slots=True)
class KeptText:
    """An unsent text, and the heading of the panel that it was typed into."""

    panel: str
    text: str
    at: datetime | None = None  # when it was saved

    @classmethod
    def read(cls, panel: str, text: str) -> KeptText | None:
        """A text as it was sent; None for a blank one."""
        return cls(panel, text) if text.strip() else None


VERBS = tuple(
    PanelButton(verdict.value, wording.button, wording.key)
    for verdict, wording in VERDICT_WORDINGS.items()
)


@dataclass(frozen=True)
class DecisionRegion:
    """What this person may do about the request now. `unsent` is what they typed into a
    panel that was just refused."""

    loaded: LoadedRequest
    regions: RenderedRegions
    answers: SentAnswers
    unsent: KeptText | None

    @cached_property
    def verbs(self) -> Sequence[PanelButton]:
        """The verdicts this person may give now."""
        loaded, regions = self.loaded, self.regions
        if not loaded.able or regions.moved or regions.target_moved:
            return ()
        left = loaded.choice.verdicts
        return [verb for verb in VERBS if verb.name in left]

    @property
    def approves(self) -> bool:
        return any(verb.name == "approve" for verb in self.verbs)

    @property
    def not_offered(self) -> str:
        left = self.loaded.choice if self.verbs else VerdictChoice()
        return f"{left.why_not_approve} {left.why_not_escalate}".strip()

    @cached_property
    def floor(self) -> datetime | None:
        """The minimum reading time that is left."""
        return reading_time.find_floor(self.regions)

    @cached_property
    def has_question(self) -> bool:
        """Whether an approval comes with an attention check."""
        regions = self.regions
        question = attention.find_attention_check(
            self.answers.session,
            self.loaded,
            regions.values,
            Verdict.APPROVE,
            regions.opened,
        )
        return question is not None

    @cached_property
    def written_question(self) -> WrittenQuestion | None:
        return choice.find_written_question(self.regions.values)

    @cached_property
    def drafts(self) -> list[KeptText]:
        """The person's unsent drafts, the newest first."""
        if not self.loaded.drafted:
            return []
        rows = drafts.list_drafts(self.loaded.person, self.loaded.request.pk)
        return [
            KeptText(messages.describe_draft(row.panel), row.reason, row.saved_at)
            for row in rows
        ]

    @property
    def kept(self) -> list[KeptText]:
        """The texts that the person typed, for when no verb is left to send them with;
        first the one that was just refused."""
        stored, unsent = [draft for draft in self.drafts if draft.text], self.unsent
        if unsent is None:
            return stored
        return [unsent, *(draft for draft in stored if draft.panel != unsent.panel)]

    @property
    def may_note(self) -> bool:
        """Whether the person can add a note but not decide."""
        return bool(self.loaded.why_not) and history.may_add_note(self.loaded)

    @property
    def may_step(self) -> bool:
        """Whether the person has a queue to step through."""
        return permissions.find_deciding_role(self.loaded.person) is not None

    @property
    def message_buttons(self) -> Sequence[PanelButton]:
        """The buttons of messages, beside the verdicts; none where no agent reads."""
        by_person = self.loaded.request.proposal.source == REVERSAL_SOURCE
        if by_person or not self.verbs:
            return ()
        return messages.list_message_buttons(self.loaded)

    @property
    def may_move(self) -> bool:
        """Whether this person can move the request to another queue."""
        return holding.may_supervise(self.loaded.person, self.loaded.request)

    @cached_property
    def may_allow(self) -> bool:
        """Whether this person can allow such calls of the run in advance."""
        tool, person = self.loaded.revision.tool, self.loaded.person
        if tool is None or tools.load_definition(tool).standing_grant is None:
            return False
        return issuance.may_issue(person, self.loaded.request, self.loaded.now)

    @cached_property
    def batch(self) -> BatchLink | None:
        """The batch in which this request waits, or None. One query, and none for a
        tool that never batches."""
        tool, request = self.loaded.revision.tool, self.loaded.request
        batches = tool is not None and tools.load_definition(tool).batchable is not None
        if not batches or request.status != RequestStatus.PENDING:
            return None
        return links.list_batch_links([request.pk]).get(request.pk)

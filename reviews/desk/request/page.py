"""R8: what this person may do now, or why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from django.urls import reverse

from policies import tools
from reviews import permissions
from reviews.decisions import drafts
from reviews.desk.batches import links
from reviews.desk.components.choice import Choice
from reviews.models import Draft
from reviews.queries.review.beside import Beside

from . import next_proposals
from . import outcome as outcomes
from . import remarks as request_remarks
from .next_proposals import Following
from .outcome import Outcome
from .remarks import Remark


@dataclass(frozen=True, slots=True)
class Verb:
    name: str
    label: str
    key: str


VERBS = (
    Verb("approve", "Approve", "A"),
    Verb("modify", "Modify…", "M"),
    Verb("reject", "Reject…", "X"),
    Verb("escalate", "Escalate…", "U"),
)


class Deciding(Beside):
    """The verbs or the outcome, and the words that a person typed."""

    # R8
    @property
    def verbs(self) -> Sequence[Verb]:
        loaded = self.loaded
        if not loaded.able or self.moved or self.target_moved:
            return ()
        left = loaded.choice.verdicts
        return [verb for verb in VERBS if verb.name in left]

    @property
    def approves(self) -> bool:
        """Whether Approve is among the verbs."""
        return any(verb.name == "approve" for verb in self.verbs)

    @property
    def not_offered(self) -> str:
        """Why a verb is missing beside the others."""
        left = self.loaded.choice if self.verbs else Choice()
        return f"{left.why_not_approve} {left.why_not_escalate}".strip()

    @property
    def outcome(self) -> Outcome:
        if self.target_moved:
            return outcomes.target_moved(self.loaded)
        if not self.moved:
            return outcomes.of(self.loaded)
        return outcomes.moved(self.loaded, self.old)

    @property
    def check_url(self) -> str:
        """Where an edit is looked at before it is committed."""
        return reverse("reviews:decide", args=[self.id]) + "?check=1"

    @cached_property
    def draft(self) -> Draft | None:
        """What this person typed before and did not send."""
        loaded = self.loaded
        return drafts.of(loaded.person, loaded.request) if loaded.drafted else None

    @property
    def kept(self) -> str:
        """The person's words, for where no verb is left to send them with."""
        return self.note_kept or (self.draft.reason if self.draft else "")

    @property
    def may_note(self) -> bool:
        """Whether words beside a verdict are all that this person can add."""
        return bool(self.loaded.why_not) and request_remarks.may_add(self.loaded)

    @property
    def may_step(self) -> bool:
        """Whether there is a queue to go on in."""
        return permissions.deciding_role(self.loaded.person) is not None

    @cached_property
    def remarks(self) -> list[Remark]:
        return request_remarks.of(self.loaded) if self.loaded.remarked else []

    @cached_property
    def within(self) -> links.Within | None:
        """The batch in which this request waits beside others like it."""
        tool = self.loaded.revision.tool
        if tool is None:
            return None
        return links.containing(self.loaded.request, tools.definition(tool))

    @cached_property
    def following(self) -> Following | None:
        """What the agent proposed after the end of this request."""
        return next_proposals.after(self.loaded)

    @property
    def watches(self) -> bool:
        """Whether an open page asks for that, because it may be on its way."""
        return self.following is None and next_proposals.is_watched(self.loaded)

    @property
    def recall(self) -> bool:
        return outcomes.may_recall(self.loaded)

    @property
    def retry(self) -> bool:
        return outcomes.may_retry(self.loaded)

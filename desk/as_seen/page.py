"""Page evidence, opened again.

Shows the stored page of a decision, compares its digest with the log's, and renders it
again from the stored inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.urls import reverse

from journal import archives
from journal.errors import NotFound
from journal.models import LogRecord
from policies.models import Person
from reviews import permissions
from reviews.choices import REASON_LABELS, VERDICT_SPECS, Verdict
from reviews.decisions import submission
from reviews.models import ApprovalRequest, Decision, Snapshot
from reviews.models.base import format_removal

from ..batches import evidence
from ..components import endings, page_evidence, snapshots
from ..components.log_sentences import HIDDEN_NAME

MINUTES_MS = 120_000  # longer times are printed in minutes
FLAG_WORDS = {
    "fast": "confirmed before the minimum reading time, twice",
    "check_missed": "failed the attention check",
    "narrow": "on a narrow screen",
    "batch": "in a batch",
    "hold_broken": "after a claim was ended by a supervisor",
}


# The results of the comparisons: a sentence, and whether it is good.
FINDINGS = {
    "no_page": ("This was decided through the API. No page was shown.", True),
    "matches": ("Matches what was shown: the audit log has the same digest.", True),
    "differs": (
        "Does not match: the audit log has another digest for this decision.",
        False,
    ),
    "gone": ("Cannot be rendered again: its version no longer exists.", False),
    "identical": ("Rendered again from the same inputs, it is identical.", True),
    "templates_changed": (
        "Rendered again, it differs: the templates have changed since.",
        True,
    ),
    "changed": ("Rendered again, it differs, with the same templates.", False),
}


@dataclass(frozen=True, slots=True)
class EvidenceFinding:
    """The result of one comparison, as a code and a sentence."""

    code: str
    text: str
    good: bool


class AsSeenPage:
    """One decision with its page, for a person who may open it."""

    def __init__(self, person: Person, decision: Decision) -> None:
        self.person = person
        self.decision = decision
        self.request: ApprovalRequest = decision.request
        self.url = reverse("reviews:request_detail", args=[self.request.pk])
        self.verdict = VERDICT_SPECS[Verdict(decision.verdict)].label
        self.at: datetime = decision.at
        self.version = self.inputs.get("version", decision.version)

    @cached_property
    def snapshot(self) -> Snapshot | None:
        return snapshots.find_snapshot(self.decision)

    @property
    def batch(self) -> str:
        """The id of the batch that it was decided in; empty for a single decision."""
        return str(self.decision.authority.get("batch", ""))

    @property
    def inputs(self) -> dict[str, object]:
        return self.snapshot.inputs if self.snapshot else {}

    @property
    def who(self) -> Person | str:
        """The decider, or a name that hides them from the owners of the run."""
        owned = self.person.public_id in self.request.proposal.barred
        never = permissions.never_decides(self.person)
        if owned and not never and self.decision.reviewer_id != self.person.pk:
            return HIDDEN_NAME
        return self.decision.reviewer

    @property
    def written(self) -> Mapping[str, str]:
        """The written question and its answer, as `asked` and `written`; empty without
        one."""
        check: Mapping[str, str] = self.decision.check_asked
        return check if "written" in check else {}

    @property
    def reason(self) -> str:
        code = self.decision.reason_code
        return REASON_LABELS.get(code, code)

    @property
    def took(self) -> str:
        """How long the page was on the screen."""
        took = self.decision.took_ms
        if took is None:
            return ""
        return f"{took / 1000:.1f} s" if took < MINUTES_MS else f"{took // 60_000} min"

    @cached_property
    def ended(self) -> str:
        """What later ended the decision: `Undone after 4 s`; empty while it stands."""
        ending = endings.list_decision_endings([self.decision]).get(self.decision.pk)
        return ending.describe(self.at).capitalize() if ending else ""

    @property
    def flags(self) -> list[str]:
        return [FLAG_WORDS.get(flag, flag) for flag in self.decision.flags]

    @cached_property
    def stored(self) -> str:
        """The stored page; empty when it is damaged."""
        if self.snapshot is None:
            return ""
        try:
            return submission.decompress_snapshot(self.snapshot)
        except ValueError:
            return ""

    @cached_property
    def digest(self) -> str:
        if self.snapshot and self.snapshot.removed_after:
            return self.snapshot.digest
        return submission.compute_page_digest(self.stored)

    @cached_property
    def logged(self) -> str:
        """The page digest in the log's record of this decision."""
        record = LogRecord.objects.filter(
            kind="decision.recorded",
            request=self.request.pk,
            actor_id=self.decision.reviewer.public_id,
            at=self.decision.at,
        ).first()
        if record is None:
            return ""
        return str(record.data.get("view", ""))

    @cached_property
    def archived(self) -> archives.ArchivedPart | None:
        """The part of the log with the decision's record, if it left the database."""
        parts = archives.list_archived_parts(since=self.at, until=self.at)
        return parts[0] if parts else None

    @property
    def matches(self) -> bool:
        """Whether the stored bytes are the ones that were shown."""
        snapshot = self.snapshot
        return snapshot is not None and self.digest == snapshot.digest == self.logged

    @property
    def html(self) -> str:
        """The page as it was shown. It is printed unescaped, so only when the log
        proves that our own templates produced these bytes."""
        return self.stored if self.matches else ""

    @property
    def findings(self) -> list[EvidenceFinding]:
        """The results of all comparisons."""
        codes = ["no_page"]
        if self.snapshot is not None and self.snapshot.removed_after:
            text = format_removal("Stored page", self.snapshot.removed_after)
            return [EvidenceFinding("removed", f"{text} Its digest stays.", True)]
        if self.snapshot is not None and not self.logged and self.archived:
            text = f"Cannot be compared here: its record was {self.archived}."
            return [EvidenceFinding("archived", text, True)]
        if self.snapshot is not None:
            codes = ["matches" if self.matches else "differs", self._compare_again()]
        return [EvidenceFinding(code, *FINDINGS[code]) for code in codes]

    def _compare_again(self) -> str:
        """Compare the stored page with one rendered from the same inputs."""
        assert self.snapshot is not None
        again = (
            evidence.rebuild_page_evidence
            if self.batch
            else page_evidence.find_rerendered_page
        )
        made = again(self.decision.reviewer, self.snapshot.inputs)
        if made is None:
            return "gone"
        if made.digest == self.digest:
            return "identical"
        same = made.template_version == self.snapshot.template_version
        return "changed" if same else "templates_changed"


def load_as_seen_page(person: Person, request_pk: str, decision_pk: int) -> AsSeenPage:
    """Load the page of one decision. Raises NotFound for a person who may not open it,
    and while they may still decide the request and would learn another's answer."""
    decision = (
        snapshots.select_openable_decisions(person)
        .filter(pk=decision_pk, request=request_pk)
        .select_related("request__proposal", "reviewer", "snapshot")
        .first()
    )
    if decision is None:
        raise NotFound
    return AsSeenPage(person, decision)

"""The page of one sealed version of a request, the difference between two versions, and
what people and the agent wrote beside the verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.db.models import Exists, OuterRef, QuerySet
from django.urls import reverse

from journal.errors import NotFound
from policies.models import Person
from reviews import permissions
from reviews.choices import OPEN, MessageKind, NoteKind
from reviews.decisions.submission import RenderedPage
from reviews.effects import describe
from reviews.effects.wording import format_required_people
from reviews.models import ApprovalRequest, Decision, Note, RequestVersion

from ..components import page_evidence, visibility
from ..components.regions import CAUSE_WORDS, Regions
from .load import LoadedRequest, format_name


@dataclass(frozen=True, slots=True)
class ComparedTerm:
    """One term of the request, such as its risk, in both versions."""

    label: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ComparedText:
    """What the agent said in both versions: untrusted text."""

    heading: str
    before: str
    after: str


class VersionPage:
    """A version, and what differs from the older one if there is one."""

    def __init__(
        self,
        person: Person,
        sealed: RequestVersion,
        older: RequestVersion | None,
    ) -> None:
        self.person = person
        self.sealed = sealed
        self.older = older
        self.request: ApprovalRequest = sealed.request
        self.id = self.request.pk
        self.number = sealed.number
        self.newest = self.request.version
        self.url = reverse("reviews:request_detail", args=[self.id])
        self.action_hash = sealed.revision.action_hash
        self.cause = CAUSE_WORDS.get(sealed.cause, sealed.cause)

    @property
    def numbers(self) -> range:
        return range(1, self.newest + 1)

    @property
    def earlier(self) -> int:
        return self.number - 1

    @property
    def was(self) -> str:
        """The heading of the column with the older version; empty without one."""
        return f"Version {self.older.number}" if self.older else ""

    @property
    def is_now(self) -> str:
        """The heading of the column with this version."""
        return f"Version {self.number}"

    @property
    def asked(self) -> str:
        """The people whom the version asks, in words."""
        return format_required_people(self.sealed.steps)

    @cached_property
    def sight(self) -> RenderedPage:
        """The version's regions as this person sees them now."""
        return page_evidence.load_cached_regions(Regions(self.person, self.sealed))

    @property
    def parts(self) -> tuple[str, ...]:
        return self.sight.parts

    @cached_property
    def rows(self) -> list[describe.ArgumentChange]:
        """What the page shows differently: the arguments first, destructive changes
        before others."""
        if self.older is None:
            return []
        return describe.list_page_changes(self.older.revision, self.sealed.revision)

    @cached_property
    def terms(self) -> list[ComparedTerm]:
        """The terms that differ."""
        if self.older is None:
            return []
        pairs = zip(_list_terms(self.older), _list_terms(self.sealed), strict=True)
        return [
            ComparedTerm(label, before, after)
            for (label, before), (_, after) in pairs
            if before != after
        ]

    @cached_property
    def words(self) -> list[ComparedText]:
        """The agent's texts that differ; evidence is identified by its number."""
        if self.older is None:
            return []
        before, after = (
            _collect_agent_texts(self.older),
            _collect_agent_texts(self.sealed),
        )
        return [
            ComparedText(heading, before.get(heading, ""), after.get(heading, ""))
            for heading in dict.fromkeys([*before, *after])
            if before.get(heading, "") != after.get(heading, "")
        ]


def load_version_page(
    person: Person, pk: str, number: int, compare: str = ""
) -> VersionPage:
    """The page of version `number`, or of the comparison `compare`, such as `2..3`; a
    malformed one is ignored. Raises NotFound."""
    if not visibility.select_visible_requests(person).filter(pk=pk).exists():
        raise NotFound
    older, newer = _parse_comparison(compare)
    sealed = page_evidence.find_version(pk, newer or number)
    if sealed is None:
        raise NotFound
    return VersionPage(
        person, sealed, page_evidence.find_version(pk, older) if older else None
    )


def _parse_comparison(compare: str) -> tuple[int, int]:
    before, dots, after = compare.partition("..")
    sane = all(part.isdecimal() and len(part) < 6 for part in (before, after))
    return (int(before), int(after)) if dots and sane else (0, 0)


def _list_terms(sealed: RequestVersion) -> Iterator[tuple[str, str]]:
    yield "Risk", sealed.risk
    yield "Tier", sealed.tier
    yield "Required", format_required_people(sealed.steps)
    yield (
        "Rules",
        "; ".join(rule["text"] for rule in sealed.rules) or "minimum for this tool",
    )
    yield "Expires", f"{sealed.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    yield "Policy", f"v{sealed.policy.number}"


def _collect_agent_texts(sealed: RequestVersion) -> dict[str, str]:
    revision = sealed.revision
    found = {"Rationale": revision.rationale}
    for heading, text in describe.list_agent_claims(sealed.request.proposal, revision):
        found[heading] = "\n".join(filter(None, [found.get(heading, ""), text]))
    for number, item in enumerate(describe.list_evidence(revision), 1):
        found[f"Evidence {number}"] = item.text or item.withheld
    return found


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
            format_name(loaded, row.author),
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


MESSAGE_LABELS = {
    MessageKind.QUESTION: "Question",
    MessageKind.ANSWER: "Answer",
    MessageKind.GUIDANCE: "Sent back for revision",
}


@dataclass(frozen=True, slots=True)
class ConversationLine:
    """One message, to be printed as plain text. `who` is empty for the agent's."""

    what: str
    who: str
    round: int
    at: datetime
    text: str


def build_conversation(loaded: LoadedRequest) -> list[ConversationLine]:
    """The messages between people and the agent, oldest first. Nobody votes by a
    message, so everybody who may see the request reads them."""
    return [
        ConversationLine(
            MESSAGE_LABELS[MessageKind(one.kind)],
            format_name(loaded, one.author) if one.author else "",
            one.round,
            one.at,
            one.text,
        )
        for one in loaded.dialogue.messages
    ]


def may_add_note(loaded: LoadedRequest) -> bool:
    """Whether this person may add a note, by the rule of `drafts.add_note`."""
    decides = permissions.find_deciding_role(loaded.person) is not None
    return decides and loaded.request.queue_id in permissions.queues_of(loaded.person)

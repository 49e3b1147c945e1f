"""The page of escalations: requests that need a supervisor or a second person, by
deadline; statistics for supervisors; and disagreements between two people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, QuerySet

from journal import cursors
from policies.choices import Role, Tier
from policies.models import Person
from reviews import permissions
from reviews.choices import REASON_LABELS, NoteKind, RequestStatus, Verdict
from reviews.governance import voters
from reviews.models import ApprovalRequest, Decision, Note, RequestVersion
from reviews.roles import Permission

from ..components import visibility
from ..components.choice import VERDICT_WORDINGS
from ..queue import page as queue
from ..queue.page import QueueRow

MAX_WAITING = 200
MAX_OVER = 20  # rows of expired requests and of disagreements
MAX_DECISIONS = 1000  # decisions from which the rates are computed
WEEK = timedelta(days=7)
SPLIT_FOR = timedelta(days=30)
EXPIRED_FOR = timedelta(days=1)
MANY_ESCALATIONS = (
    3  # escalations by one rule in a week that suggest a look at the rule
)


@dataclass(frozen=True, slots=True)
class EscalationVote:
    """One answer in a disagreement."""

    decision: Decision
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class SplitDecision:
    """A request that one person approved and another rejected. It counts as
    rejected."""

    row: QueueRow
    votes: list[EscalationVote]
    may_close: bool


@dataclass(frozen=True, slots=True)
class EscalationRate:
    """How often one tool's requests are escalated."""

    tool: str
    escalated: int
    decided: int

    @property
    def share(self) -> str:
        return f"{100 * self.escalated / self.decided:.0f} %"


@dataclass(frozen=True, slots=True)
class EscalationFigures:
    """How much was escalated in the last week, and why."""

    decided: int
    rates: list[EscalationRate]
    reasons: list[tuple[str, int]]
    rules: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class EscalationsPage:
    """The page, with the row bands of each section; a section without rows has none."""

    answerable: list[list[QueueRow]]
    others: list[list[QueueRow]]
    expired: list[list[QueueRow]]
    splits: list[SplitDecision]
    figures: EscalationFigures | None
    more_expired: int  # not listed


def build_escalations_page(person: Person, *, now: datetime) -> EscalationsPage:
    """Build the page: first what this person can answer, then what waits for others."""
    rows = list_waiting_rows(person, now)
    can = _list_answerable_ids(person, rows)
    sees_all = permissions.has_permission(person, Permission.SEE_ALL)
    expired = _list_expired_rows(person, now) if sees_all else []
    return EscalationsPage(
        answerable=_build_bands(row for row in rows if row.id in can),
        others=_build_bands(row for row in rows if row.id not in can),
        expired=_build_bands(expired),
        more_expired=cursors.count_rest(_select_expired(now), expired, MAX_OVER),
        splits=_list_splits(person, now) if sees_all else [],
        figures=_compute_figures(now) if sees_all else None,
    )


def _build_bands(rows: Iterable[QueueRow]) -> list[list[QueueRow]]:
    band = list(rows)
    return [band] if band else []


def list_waiting_rows(person: Person, now: datetime) -> list[QueueRow]:
    """List the open escalations: all for people who see all, for a reviewer those they
    escalated."""
    requests = visibility.select_visible_requests(person).filter(
        status=RequestStatus.PENDING, expires_at__gt=now, tier=Tier.ESCALATE
    )
    if not permissions.has_permission(person, Permission.SEE_ALL):
        own = RequestVersion.objects.filter(
            request=OuterRef("pk"), escalated_by__contains=[person.public_id]
        )
        requests = requests.filter(Exists(own))
    ids = requests.order_by("expires_at", "pk").values_list("pk", flat=True)[
        :MAX_WAITING
    ]
    return queue.list_rows_by_id(ids, person, now, page="reviews:escalation")


def _list_answerable_ids(person: Person, rows: list[QueueRow]) -> set[str]:
    decidable = visibility.select_decidable(person).filter(
        pk__in=[row.id for row in rows]
    )
    return set(decidable.values_list("pk", flat=True))


def _list_expired_rows(person: Person, now: datetime) -> list[QueueRow]:
    """The requests that nobody answered in the last day: each one is a failure of the
    desk."""
    expired = _select_expired(now)
    ids = expired.order_by("-settled_at").values_list("pk", flat=True)[:MAX_OVER]
    return queue.list_rows_by_id(ids, person, now)


def _select_expired(now: datetime) -> QuerySet[ApprovalRequest]:
    return ApprovalRequest.objects.filter(
        status=RequestStatus.EXPIRED, settled_at__gt=now - EXPIRED_FOR
    )


def _list_splits(person: Person, now: datetime) -> list[SplitDecision]:
    votes = Decision.objects.filter(
        request=OuterRef("pk"), version=OuterRef("version")
    ).order_by()
    closed = Note.objects.filter(request=OuterRef("pk"), kind=NoteKind.ARBITRATION)
    requests = list(
        ApprovalRequest.objects.filter(
            Exists(votes.filter(counts=True)),
            Exists(votes.filter(verdict=Verdict.REJECT)),
            ~Exists(closed),
            status=RequestStatus.REJECTED,
            settled_at__gt=now - SPLIT_FOR,
        )
        .exclude(barred__contains=[person.public_id])
        .order_by("-settled_at")[:MAX_OVER]
    )
    rows = {
        row.id: row
        for row in queue.list_rows_by_id([r.pk for r in requests], person, now)
    }
    answers = _load_votes(requests)
    supervises = permissions.find_deciding_role(person) is Role.SUPERVISOR
    queues = permissions.queues_of(person)
    return [
        SplitDecision(
            rows[request.pk],
            answers[request.pk],
            may_close=supervises and request.queue_id in queues,
        )
        for request in requests
    ]


def _load_votes(requests: Iterable[ApprovalRequest]) -> dict[str, list[EscalationVote]]:
    versions = {request.pk: request.version for request in requests}
    votes: dict[str, list[EscalationVote]] = {pk: [] for pk in versions}
    rows = Decision.objects.filter(request__in=versions).select_related("reviewer")
    for row in rows.order_by("at"):
        if row.version == versions[row.request_id]:
            votes[row.request_id].append(_build_vote(row))
    return votes


def _build_vote(row: Decision) -> EscalationVote:
    return EscalationVote(
        decision=row,
        verdict=VERDICT_WORDINGS[Verdict(row.verdict)].vote,
        reason=REASON_LABELS.get(row.reason_code, ""),
    )


def _compute_figures(now: datetime) -> EscalationFigures:
    """Compute the figures from this week's newest decisions, at most MAX_DECISIONS.
    Approvals that were undone are none."""
    newest = Decision.objects.exclude(voters.build_undone_condition()).order_by("-pk")
    columns = ("at", "verdict", "reason_code", "request", "version")
    rows = newest.values_list(*columns, "request__tool_name")[:MAX_DECISIONS]
    lately = [row for row in rows if row[0] > now - WEEK]
    up = [row for row in lately if row[1] == Verdict.ESCALATE]
    decided = Counter(row[5] for row in lately)
    by_tool = Counter(row[5] for row in up)
    reasons = Counter(REASON_LABELS.get(row[2], "No reason") for row in up)
    return EscalationFigures(
        decided=len(lately),
        rates=[
            EscalationRate(tool, n, decided[tool]) for tool, n in by_tool.most_common()
        ],
        reasons=reasons.most_common(MANY_ESCALATIONS),
        rules=_count_rules({row[3]: row[4] for row in up}),
    )


def _count_rules(versions: dict[str, int]) -> list[tuple[str, int]]:
    rows = RequestVersion.objects.filter(request__in=versions)
    counted = Counter(
        rule["text"]
        for request, number, rules in rows.values_list("request", "number", "rules")
        if versions[request] == number
        for rule in rules
    )
    return [(text, n) for text, n in counted.most_common() if n >= MANY_ESCALATIONS]

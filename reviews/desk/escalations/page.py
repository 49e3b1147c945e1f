"""The page of escalations: requests that need a supervisor or a second person, by
deadline; statistics for supervisors; and disagreements between two people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef
from django.urls import reverse

from policies.choices import Role, Tier
from policies.models import Person
from reviews import permissions
from reviews.choices import REASONS, NoteKind, RequestStatus, Verdict
from reviews.desk.components import visibility
from reviews.desk.queue import page as queue
from reviews.desk.queue.page import Row
from reviews.models import ApprovalRequest, Decision, Note, RequestVersion
from reviews.permissions import Permission

MOST = 200
SHORT = 20  # rows of expired requests and of disagreements
NEWEST = 1000  # decisions from which the rates are computed
WEEK = timedelta(days=7)
SPLIT_FOR = timedelta(days=30)
EXPIRED_FOR = timedelta(days=1)
MANY = 3  # escalations by one rule in a week that suggest a look at the rule
LEANINGS = {"leans_approve": "would approve it", "leans_reject": "would reject it"}


@dataclass(frozen=True, slots=True)
class Vote:
    """One answer in a disagreement."""

    who: str
    verdict: str
    reason: str
    note: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Split:
    """A request that one person approved and another rejected. It counts as
    rejected."""

    row: Row
    votes: list[Vote]
    may_close: bool


@dataclass(frozen=True, slots=True)
class Rate:
    """How often one tool's requests are escalated."""

    tool: str
    escalated: int
    decided: int

    @property
    def share(self) -> str:
        return f"{self.escalated / self.decided:.0%}"


@dataclass(frozen=True, slots=True)
class Figures:
    """How much was escalated in the last week, and why."""

    decided: int
    rates: list[Rate]
    reasons: list[tuple[str, int]]
    rules: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class EscalationsPage:
    """The page, with one list of row bands for each section."""

    mine: list[Row]
    others: list[Row]
    expired: list[Row]
    splits: list[Split]
    figures: Figures | None

    @property
    def mine_bands(self) -> list[list[Row]]:
        return [self.mine]

    @property
    def other_bands(self) -> list[list[Row]]:
        return [self.others]

    @property
    def expired_bands(self) -> list[list[Row]]:
        return [self.expired]


def page(person: Person, *, now: datetime) -> EscalationsPage:
    """Build the page: first what this person can answer, then what waits for others."""
    rows = waiting(person, now)
    can = _answerable(person, rows)
    sees_all = permissions.allowed(person, Permission.SEE_ALL)
    return EscalationsPage(
        mine=[row for row in rows if row.id in can],
        others=[row for row in rows if row.id not in can],
        expired=_expired(person, now) if sees_all else [],
        splits=_splits(person, now) if sees_all else [],
        figures=_figures(now) if sees_all else None,
    )


def waiting(person: Person, now: datetime) -> list[Row]:
    """List the open escalations: all for people who see all, for a reviewer those they
    escalated."""
    found = visibility.requests(person).filter(
        status=RequestStatus.PENDING, expires_at__gt=now, tier=Tier.ESCALATE
    )
    if not permissions.allowed(person, Permission.SEE_ALL):
        own = RequestVersion.objects.filter(
            request=OuterRef("pk"), escalated_by__contains=[person.public_id]
        )
        found = found.filter(Exists(own))
    ids = found.order_by("expires_at", "pk").values_list("pk", flat=True)[:MOST]
    return queue.rows_of(ids, person, now, base=reverse("reviews:escalations"))


def _answerable(person: Person, rows: list[Row]) -> set[str]:
    found = visibility.decidable(person).filter(pk__in=[row.id for row in rows])
    return set(found.values_list("pk", flat=True))


def _expired(person: Person, now: datetime) -> list[Row]:
    """The requests that nobody answered in the last day: each one is a failure of the
    desk."""
    found = ApprovalRequest.objects.filter(
        status=RequestStatus.EXPIRED, settled_at__gt=now - EXPIRED_FOR
    )
    ids = found.order_by("-settled_at").values_list("pk", flat=True)[:SHORT]
    return queue.rows_of(ids, person, now)


def _splits(person: Person, now: datetime) -> list[Split]:
    votes = Decision.objects.filter(
        request=OuterRef("pk"), version=OuterRef("version")
    ).order_by()
    closed = Note.objects.filter(request=OuterRef("pk"), kind=NoteKind.ARBITRATION)
    found = list(
        ApprovalRequest.objects.filter(
            Exists(votes.filter(counts=True)),
            Exists(votes.filter(verdict=Verdict.REJECT)),
            ~Exists(closed),
            status=RequestStatus.REJECTED,
            settled_at__gt=now - SPLIT_FOR,
        )
        .exclude(barred__contains=[person.public_id])
        .order_by("-settled_at")[:SHORT]
    )
    rows = {row.id: row for row in queue.rows_of([r.pk for r in found], person, now)}
    said = _votes(found)
    supervises = permissions.deciding_role(person) is Role.SUPERVISOR
    queues = permissions.queues_of(person)
    return [
        Split(
            rows[one.pk], said[one.pk], may_close=supervises and one.queue_id in queues
        )
        for one in found
    ]


def _votes(requests: Iterable[ApprovalRequest]) -> dict[str, list[Vote]]:
    """Load both answers on the version that was rejected, in the order they came."""
    versions = {one.pk: one.version for one in requests}
    found: dict[str, list[Vote]] = {pk: [] for pk in versions}
    rows = Decision.objects.filter(request__in=versions).select_related("reviewer")
    for row in rows.order_by("at"):
        if row.version == versions[row.request_id]:
            found[row.request_id].append(_vote(row))
    return found


def _vote(row: Decision) -> Vote:
    return Vote(
        who=str(row.reviewer),
        verdict={"approve": "Approved", "modify": "Approved with changes"}.get(
            row.verdict, "Rejected"
        ),
        reason=REASONS.get(row.reason_code, ""),
        note=row.reason,
        at=row.at,
    )


def _figures(now: datetime) -> Figures:
    """Compute the figures from this week's newest decisions, at most MAX_DECISIONS."""
    newest = Decision.objects.order_by("-pk")
    columns = ("at", "verdict", "reason_code", "request", "version")
    rows = newest.values_list(*columns, "request__tool_name")[:NEWEST]
    lately = [row for row in rows if row[0] > now - WEEK]
    up = [row for row in lately if row[1] == Verdict.ESCALATE]
    decided = Counter(row[5] for row in lately)
    by_tool = Counter(row[5] for row in up)
    reasons = Counter(REASONS.get(row[2], "No reason") for row in up)
    return Figures(
        decided=len(lately),
        rates=[Rate(tool, n, decided[tool]) for tool, n in by_tool.most_common()],
        reasons=reasons.most_common(MANY),
        rules=_rules({row[3]: row[4] for row in up}),
    )


def _rules(versions: dict[str, int]) -> list[tuple[str, int]]:
    """Count the rules under which at least MANY_ESCALATIONS requests were escalated."""
    found = RequestVersion.objects.filter(request__in=versions)
    counted = Counter(
        rule["text"]
        for request, number, rules in found.values_list("request", "number", "rules")
        if versions[request] == number
        for rule in rules
    )
    return [(text, n) for text, n in counted.most_common() if n >= MANY]

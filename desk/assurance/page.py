"""The assurance page: what canaries are, a person's own, their practice, how their
people do, and how reviewers do with each kind of defect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, QuerySet

from assurance import practice
from assurance.datasets import consent
from assurance.defects import BY_KIND
from policies import active
from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.choices import VERDICT_SPECS, DefectKind, RealismFlag, Verdict
from reviews.models import Canary, Decision, Practice
from reviews.roles import Permission
from stats.charts import format_rate
from stats.people import FEWEST
from stats.readings import Rate

from . import practice_page
from .people import PERIOD, PersonRow, build_person_rows
from .practice_page import PracticeCounts

MOST_OWN = 20
MOST_PRACTICES = 10


@dataclass(frozen=True, slots=True)
class OwnCanary:
    """One revealed canary of the reader."""

    canary: Canary
    title: str
    outcome: str


@dataclass(frozen=True, slots=True)
class DefectRow:
    """How reviewers did with one kind of defect, and how real it looked to them."""

    title: str
    rate: str
    obvious: int
    unclear: int


@dataclass(frozen=True, slots=True)
class TeamView:
    """The figures of everybody. `withheld`: of too few people for this reader."""

    rate: str
    covered: int
    reviewers: int
    rows: Sequence[DefectRow]
    withheld: bool = False


@dataclass(frozen=True, slots=True)
class PracticeLine:
    """One practice of the reader that ended."""

    practice: Practice
    title: str
    counts: PracticeCounts


@dataclass(frozen=True, slots=True)
class PracticeView:
    """The reader's practice. `open_url` leads on in the one that has not ended."""

    open_url: str
    enough: bool  # decided requests for a warm-up
    lines: Sequence[PracticeLine]


@dataclass(frozen=True, slots=True)
class AssurancePage:
    """The whole page. `team` is None for people who may not see statistics, `practice`
    for those who decide no requests, and `people` for all but supervisors."""

    on: bool
    own_rate: str
    own: Sequence[OwnCanary]
    practice: PracticeView | None
    people: Sequence[PersonRow] | None
    team: TeamView | None
    sees_datasets: bool
    manages_defects: bool


def build_assurance_page(person: Person, now: datetime) -> AssurancePage:
    """Build the page, in a fixed number of queries."""
    policy = active.find_active_policy()
    met = _select_decided(now).filter(reviewer=person)
    own = list(met.select_related("proposal__request").order_by("-ended_at"))
    caught = sum(bool(canary.caught) for canary in own)
    sees = permissions.has_permission(person, Permission.SEE_STATISTICS)
    return AssurancePage(
        on=policy is not None and active.load_document(policy).assurance.canaries,
        own_rate=format_rate(Rate(caught, len(own))),
        own=[_build_own(canary) for canary in own[:MOST_OWN]],
        practice=_build_practice(person, now),
        people=build_person_rows(person, now),
        team=_build_team(person, now) if sees else None,
        sees_datasets=consent.may_see_datasets(person),
        manages_defects=permissions.has_permission(person, Permission.MANAGE_DEFECTS),
    )


def _build_practice(person: Person, now: datetime) -> PracticeView | None:
    if permissions.find_deciding_role(person) is None:
        return None
    open_ = practice.find_open_practice(person)
    ended = Practice.objects.filter(
        reviewer=person, started_at__gt=now - PERIOD, items__answered_at__isnull=False
    )
    rows = ended.exclude(ending="").distinct().prefetch_related("items")
    return PracticeView(
        open_url=practice_page.find_next_url(open_) if open_ else "",
        enough=practice.has_enough_sources(person, now),
        lines=[
            PracticeLine(
                row,
                practice_page.describe_practice(row),
                practice_page.count_answers(row.items.all()),
            )
            for row in rows.order_by("-started_at")[:MOST_PRACTICES]
        ],
    )


def _select_decided(now: datetime) -> QuerySet[Canary]:
    return Canary.objects.filter(caught__isnull=False, ended_at__gt=now - PERIOD)


def _build_own(canary: Canary) -> OwnCanary:
    past = VERDICT_SPECS[Verdict(canary.verdict)].past_in_full.capitalize()
    return OwnCanary(
        canary=canary,
        title=BY_KIND[DefectKind(canary.defect)].title,
        outcome=f"{past}: {'caught' if canary.caught else 'missed'}",
    )


def _build_team(person: Person, now: datetime) -> TeamView:
    decided = _select_decided(now)
    met = set(decided.values_list("reviewer", flat=True))
    worked = set(
        Decision.objects.filter(at__gt=now - PERIOD).values_list("reviewer", flat=True)
    )
    alone = permissions.find_deciding_role(person) is Role.SUPERVISOR
    if 0 < len(met) < FEWEST and not alone:
        return TeamView("", len(met), len(worked | met), [], withheld=True)
    rows = list(
        decided.values("defect")
        .annotate(
            n=Count("pk"),
            caught_n=Count("pk", filter=Q(caught=True)),
            obvious=Count("pk", filter=Q(realism=RealismFlag.OBVIOUS)),
            unclear=Count("pk", filter=Q(realism=RealismFlag.UNCLEAR)),
        )
        .order_by("defect")
    )
    whole = Rate(sum(row["caught_n"] for row in rows), sum(row["n"] for row in rows))
    return TeamView(
        format_rate(whole), len(met), len(worked | met), list(_build_rows(rows))
    )


def _build_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[DefectRow]:
    for row in rows:
        yield DefectRow(
            BY_KIND[DefectKind(row["defect"])].title,
            format_rate(Rate(row["caught_n"], row["n"])),
            row["obvious"],
            row["unclear"],
        )

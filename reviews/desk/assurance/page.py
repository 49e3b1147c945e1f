"""The assurance page: what canaries are, a person's own, and how reviewers do with each
kind of defect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.urls import reverse

from policies import active
from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.assurance.datasets import consent
from reviews.assurance.defects import BY_KIND
from reviews.choices import VERDICT_SPECS, DefectKind, RealismFlag, Verdict
from reviews.metrics.charts import format_rate
from reviews.metrics.people import FEWEST
from reviews.metrics.readings import Rate
from reviews.models import Canary, Decision
from reviews.permissions import Permission

PERIOD = timedelta(days=30)
MOST_OWN = 20


@dataclass(frozen=True, slots=True)
class OwnCanary:
    """One revealed canary of the reader."""

    url: str
    at: datetime
    tool: str
    title: str
    said: str


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
class AssurancePage:
    """The whole page. `team` is None for people who may not see statistics."""

    on: bool
    own_rate: str
    own: Sequence[OwnCanary]
    team: TeamView | None
    sees_datasets: bool
    manages_defects: bool


def build_assurance_page(person: Person, now: datetime) -> AssurancePage:
    """Build the page, in a fixed number of queries."""
    policy = active.find_active_policy()
    mine = _select_decided(now).filter(reviewer=person)
    own = list(mine.select_related("proposal__request").order_by("-ended_at"))
    caught = sum(bool(one.caught) for one in own)
    sees = permissions.has_permission(person, Permission.SEE_STATISTICS)
    return AssurancePage(
        on=policy is not None and active.load_document(policy).assurance.canaries,
        own_rate=format_rate(Rate(caught, len(own))),
        own=[_build_own(one) for one in own[:MOST_OWN]],
        team=_build_team(person, now) if sees else None,
        sees_datasets=consent.may_see_datasets(person),
        manages_defects=permissions.has_permission(person, Permission.MANAGE_DEFECTS),
    )


def _select_decided(now: datetime) -> QuerySet[Canary]:
    return Canary.objects.filter(caught__isnull=False, ended_at__gt=now - PERIOD)


def _build_own(canary: Canary) -> OwnCanary:
    past = VERDICT_SPECS[Verdict(canary.verdict)].past_in_full.capitalize()
    assert canary.ended_at is not None  # it was decided
    return OwnCanary(
        url=reverse("reviews:request_detail", args=[canary.proposal.request.pk]),
        at=canary.ended_at,
        tool=canary.tool_name,
        title=BY_KIND[DefectKind(canary.defect)].title,
        said=f"{past}: {'caught' if canary.caught else 'missed'}",
    )


def _build_team(person: Person, now: datetime) -> TeamView:
    found = _select_decided(now)
    met = set(found.values_list("reviewer", flat=True))
    worked = set(
        Decision.objects.filter(at__gt=now - PERIOD).values_list("reviewer", flat=True)
    )
    alone = permissions.find_deciding_role(person) is Role.SUPERVISOR
    if 0 < len(met) < FEWEST and not alone:
        return TeamView("", len(met), len(worked | met), [], withheld=True)
    rows = list(
        found.values("defect")
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

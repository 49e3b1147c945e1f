"""The queues of this installation: who decides in each, and where the policy asks for
more people than there are.

A request must be decidable without the people whom it concerns, so each demand of the
policy is compared with one person fewer as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from policies import active, bands, method_covers, staffing
from policies.choices import Role, Tier
from policies.documents import Document, StepSpec
from policies.method_covers import MethodCover
from policies.models import Person, Queue
from policies.staffing import Staff
from reviews import permissions
from reviews.roles import Permission

MAX_PEOPLE = 500
TIER_WORDS = {Tier.APPROVE: "an approval", Tier.ESCALATE: "an escalation"}


@dataclass(frozen=True, slots=True)
class DemandLine:
    """What a tier needs in one queue, for which tools, and whether it can be met. With
    `having`, only those count who have what the policy takes as a step-up; `lacking`
    are the others."""

    tier: str
    needs: str
    tools: Sequence[str]
    lacks: str  # who is missing even when everybody may decide
    spare: bool  # whether it can still be met without any one person
    having: str = ""  # how many of those who could decide
    lacking: Sequence[Person] = ()

    @property
    def icon(self) -> str:
        if self.lacks:
            return "no"
        return "ok" if self.spare else "warn"

    @property
    def verdict(self) -> str:
        if self.lacks:
            return f"Cannot be met: {self.lacks}"
        return "Enough people" if self.spare else "Nobody to spare"


@dataclass(frozen=True, slots=True)
class StaffedQueue:
    """One queue: the people who decide in it, and what the policy asks of them."""

    name: str
    title: str
    supervisors: Sequence[Person]
    reviewers: Sequence[Person]
    demands: Sequence[DemandLine]

    @property
    def is_short(self) -> bool:
        """Whether some request could wait for people who do not exist."""
        return any(demand.lacks or not demand.spare for demand in self.demands)


@dataclass(frozen=True, slots=True)
class QueuesPage:
    lines: Sequence[StaffedQueue]
    may_manage: bool

    @property
    def gaps(self) -> list[tuple[StaffedQueue, DemandLine]]:
        """The demands that cannot be met, or only just, worst first."""
        gaps = [
            (line, demand)
            for line in self.lines
            for demand in line.demands
            if demand.lacks or not demand.spare
        ]
        return sorted(gaps, key=lambda gap: not gap[1].lacks)


def build_queues_page(reader: Person) -> QueuesPage:
    """Build the page. Raises NotPermitted for those who may not see every account."""
    permissions.check_permission(reader, Permission.SEE_PEOPLE)
    staff = staffing.group_staff_by_queue()
    policy = active.find_active_policy()
    document = active.load_document(policy) if policy else None
    demands = _group_demands(document) if document else {}
    covers = method_covers.list_covers(document, staff) if document else []
    people = _load_people(staff.values())
    return QueuesPage(
        lines=[
            StaffedQueue(
                name=queue.name,
                title=queue.title,
                supervisors=_sort_people(staff[queue.name].supervisors, people),
                reviewers=_sort_people(staff[queue.name].reviewers, people),
                demands=[
                    *(
                        _build_demand(tier, steps, tools, staff[queue.name])
                        for (tier, steps), tools in demands.get(queue.name, {}).items()
                    ),
                    *(
                        _build_cover(cover, people)
                        for cover in covers
                        if cover.queue == queue.name
                    ),
                ],
            )
            for queue in Queue.objects.order_by("title")
        ],
        may_manage=permissions.has_permission(reader, Permission.MANAGE_PEOPLE),
    )


_Needs = tuple[tuple[Role, int], ...]


def _group_demands(
    document: Document,
) -> Mapping[str, Mapping[tuple[Tier, _Needs], list[str]]]:
    """The tools of each queue, by tier and by the people that it needs."""
    grouped: dict[str, dict[tuple[Tier, _Needs], list[str]]] = defaultdict(dict)
    for tool, queue, tier, steps, _ in staffing.list_demands(document):
        needs = tuple((step.role, step.required) for step in steps)
        grouped[queue].setdefault((tier, needs), []).append(tool)
    return grouped


def _build_demand(
    tier: Tier, needs: _Needs, tools: Sequence[str], staff: Staff
) -> DemandLine:
    steps = [StepSpec(role=role, required=required) for role, required in needs]
    return DemandLine(
        tier=TIER_WORDS[tier],
        needs=bands.describe_steps(steps),
        tools=sorted(tools),
        lacks=str(staff.lacks(steps) or ""),
        spare=staff.can_spare_one(steps),
    )


def _build_cover(cover: MethodCover, people: Mapping[int, Person]) -> DemandLine:
    return DemandLine(
        tier=TIER_WORDS[cover.tier],
        needs=f"at {cover.level} {bands.describe_steps(cover.steps)} with {cover.noun}",
        tools=cover.tools,
        lacks=str(cover.shortage or ""),
        spare=cover.having.can_spare_one(cover.steps),
        having=cover.count,
        lacking=_sort_people(cover.lacking, people),
    )


def _load_people(staff: Iterable[Staff]) -> Mapping[int, Person]:
    ids = {pk for one in staff for pk in one.supervisors | one.reviewers}
    return Person.objects.in_bulk(sorted(ids)[:MAX_PEOPLE])


def _sort_people(ids: Iterable[int], people: Mapping[int, Person]) -> list[Person]:
    return sorted((people[pk] for pk in ids if pk in people), key=str)

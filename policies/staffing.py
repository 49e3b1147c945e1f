"""Checks that enough people are admitted to each queue to satisfy a policy, so that no
request waits for an approval that nobody may give (docs/invariants.md I12)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from journal.errors import FieldError, build_field_error

from . import solo
from .choices import Risk, Role, Tier
from .documents import Document, EffectClass, StepSpec, ToolDefinition
from .models import Admission, Person

# Separation of duties: people who set the rules or audit them decide nothing.
NEVER_DECIDE = frozenset({Role.ADMINISTRATOR, Role.AUDITOR})


def find_deciding_role(roles: Collection[Role]) -> Role | None:
    """The role in which a holder of these roles decides; None when they never do."""
    if never_decides(roles):  # guard: never-decide
        return None
    if Role.SUPERVISOR in roles:
        return Role.SUPERVISOR
    return Role.REVIEWER if Role.REVIEWER in roles else None


def never_decides(roles: Collection[Role]) -> bool:
    """Whether one of these roles forbids to decide."""
    return not separate_roles().isdisjoint(roles)


def separate_roles() -> frozenset[Role]:
    """The roles whose holders decide nothing; none in solo mode."""
    return frozenset() if solo.is_solo() else NEVER_DECIDE


@dataclass(frozen=True, slots=True)
class Shortage:
    """Too few people for some steps, as text `1 of 3 supervisors`."""

    there: int
    needed: int
    who: str  # in the plural

    def __str__(self) -> str:
        return f"{self.there} of {self.needed} {self.who}"


@dataclass(slots=True)
class Staff:
    """The primary keys of the people who may decide in one queue. A supervisor may also
    stand in for a reviewer."""

    supervisors: set[int] = field(default_factory=set)
    reviewers: set[int] = field(default_factory=set)

    @property
    def people(self) -> set[int]:
        return self.supervisors | self.reviewers

    def restrict(self, among: Collection[int]) -> Staff:
        """Those among these people."""
        return Staff(self.supervisors & {*among}, self.reviewers & {*among})

    def can_spare_one(self, steps: Sequence[StepSpec]) -> bool:
        """Whether there are enough people for these steps without any one of them."""
        return not any(
            self.restrict(self.people - {person}).lacks(steps) for person in self.people
        )

    def lacks(self, steps: Iterable[StepSpec]) -> Shortage | None:
        """The shortage of people for these steps, or None when there are enough."""
        wanted = dict.fromkeys((Role.SUPERVISOR, Role.REVIEWER), 0)
        for step in steps:
            wanted[step.role] += step.required
        supervisors, everybody = wanted[Role.SUPERVISOR], sum(wanted.values())
        if len(self.supervisors) < supervisors:
            return Shortage(len(self.supervisors), supervisors, "supervisors")
        there = len(self.people)
        return Shortage(there, everybody, "people") if there < everybody else None


def list_shortages(document: Document) -> list[FieldError]:
    """One error for every tool, queue and tier with too few admitted people."""
    staff = group_staff_by_queue()
    return [
        build_field_error(
            f"queues.{queue}", f"{tier} for {tool}: {lacking} can decide here"
        )
        for tool, queue, tier, steps, _ in list_demands(document)
        if (lacking := staff[queue].lacks(steps))
    ]


def group_staff_by_queue() -> Mapping[str, Staff]:
    """The active people who may decide in each queue, by queue name. A queue without
    people has an empty Staff."""
    roles = _load_roles()
    staff: dict[str, Staff] = defaultdict(Staff)
    for queue, person in Admission.objects.values_list("queue__name", "person_id"):
        role = find_deciding_role(roles.get(person, set()))
        if role is Role.SUPERVISOR:
            staff[queue].supervisors.add(person)
        elif role is Role.REVIEWER:
            staff[queue].reviewers.add(person)
    return staff


class Demand(NamedTuple):
    """People whom a tool's calls can need in a queue. `step_up_risks` are the levels at
    which they then confirm who they are."""

    tool: str
    queue: str
    tier: Tier
    steps: Sequence[StepSpec]
    step_up_risks: Sequence[Risk]


def list_demands(document: Document) -> Iterator[Demand]:
    """Every demand that this policy can lead to."""
    for tool in document.tools.values():
        rules = document.rules_for(tool.name)
        queues = {tool.queue, *(r.then.queue for r in rules if r.then.queue)}
        added = [rule.then.step for rule in rules if rule.then.step]
        for tier in _list_tiers(document, tool):
            steps = [*document.steps_for(tool, tier), *_find_largest_steps(added)]
            for queue in sorted(queues):
                risks = _list_step_up_risks(document, tool, tier)
                yield Demand(tool.name, queue, tier, solo.cap_votes(steps), risks)
    if held := document.held_unknown:
        steps = document.steps[held.tier]
        risks = [Risk.HIGH] if held.tier is Tier.ESCALATE else []
        votes = solo.cap_votes(steps)
        yield Demand("unknown tools", held.hold, held.tier, votes, risks)


def _list_step_up_risks(
    document: Document, tool: ToolDefinition, tier: Tier
) -> list[Risk]:
    """The levels at which calls of the tool need a step-up at this tier: at the highest
    one always; below it, where a rule asks for one, and at critical risk."""
    parts: Sequence[EffectClass | ToolDefinition] = tool.classes or [tool]
    rules = document.rules_for(tool.name)
    raised = [rule.then.risk for rule in rules if rule.then.risk]
    if document.critical_above and tool.moves_money:
        raised.append(Risk.CRITICAL)
    least = min(part.risk.rank for part in parts)
    risks = {part.risk for part in parts} | {r for r in raised if r.rank > least}
    if tier is not Tier.ESCALATE and not any(rule.then.step_up for rule in rules):
        critical = [part for part in parts if part.risk is Risk.CRITICAL]
        risks = {part.risk for part in critical if part.base.rank <= tier.rank}
    return [risk for risk in Risk if risk in risks]


def _list_tiers(document: Document, tool: ToolDefinition) -> Iterator[Tier]:
    bases = [tool.base, *(c.base for c in tool.classes or [])]
    if tool.classes or tool.base is not Tier.ESCALATE:
        yield Tier.APPROVE  # an agent may say that it is unsure of any call
    rules = document.rules_for(tool.name)
    if (
        Tier.ESCALATE in bases
        or tool.moves_money  # it may be in a currency the rules do not count in
        or tool.name in document.free_form
        or any(rule.then.tier is Tier.ESCALATE or rule.then.risk for rule in rules)
    ):
        yield Tier.ESCALATE


def _find_largest_steps(steps: Iterable[StepSpec]) -> list[StepSpec]:
    """The most that rules may add: the largest step of each role."""
    largest: dict[Role, StepSpec] = {}
    for step in steps:
        if step.role not in largest or step.required > largest[step.role].required:
            largest[step.role] = step
    return list(largest.values())


def _load_roles() -> dict[int, set[Role]]:
    """The roles of each active person, by primary key."""
    roles: dict[int, set[Role]] = defaultdict(set)
    rows = Person.objects.filter(is_active=True, groups__name__in=list(Role))
    for person, name in rows.values_list("pk", "groups__name"):
        roles[person].add(Role(name))
    return roles

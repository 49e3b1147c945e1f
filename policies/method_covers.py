"""Whether the people who could decide have what a policy takes as a step-up, so that no
request waits for a vote that nobody can confirm (docs/invariants.md I12)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from journal.errors import FieldError, build_field_error

from . import passkeys, staffing, step_up
from .choices import Risk, StepUpMethod, Tier, name_methods
from .documents import Document, StepSpec
from .models import FederatedIdentity, Passkey, Person, TotpDevice
from .staffing import Shortage, Staff


@dataclass(frozen=True, slots=True)
class MethodCover:
    """In one queue, the people who could decide what a step of the policy asks for: of
    `everybody` those who have one of its methods, and the primary keys of those who
    lack it. `risks` are the levels at which the policy takes no others."""

    queue: str
    tier: Tier
    steps: Sequence[StepSpec]
    methods: Sequence[StepUpMethod]
    risks: Sequence[Risk]
    tools: Sequence[str]
    having: Staff
    everybody: Staff

    @property
    def lacking(self) -> AbstractSet[int]:
        return self.everybody.people - self.having.people

    @property
    def shortage(self) -> Shortage | None:
        """Who is missing: only people with one of the methods count."""
        return self.having.lacks(self.steps)

    @property
    def count(self) -> str:
        """`2 of 5 have a passkey`."""
        have, of = len(self.having.people), len(self.everybody.people)
        return f"{have} of {of} {'has' if have == 1 else 'have'} {self.noun}"

    @property
    def noun(self) -> str:
        """What they need: `a passkey or an authenticator app`."""
        return name_methods(self.methods)

    @property
    def level(self) -> str:
        """At which risk: `high or critical risk`."""
        return f"{' or '.join(self.risks)} risk"


def list_covers(
    document: Document, staff: Mapping[str, Staff] | None = None
) -> list[MethodCover]:
    """One for each queue, tier, people and methods, where the policy does not take
    every method. A fixed number of queries, and none where it takes every one."""
    grouped: dict[tuple[object, ...], MethodCover] = {}
    holders: Mapping[StepUpMethod, AbstractSet[int]] = {}
    for demand, risk, methods in _list_method_demands(document):
        if not holders:
            holders, staff = load_holders(), staff or staffing.group_staff_by_queue()
        needs = tuple((step.role, step.required) for step in demand.steps)
        key = (demand.queue, demand.tier, needs, methods)
        known = grouped.get(key)
        everybody = (staff or {}).get(demand.queue) or Staff()
        grouped[key] = MethodCover(
            queue=demand.queue,
            tier=demand.tier,
            steps=demand.steps,
            methods=methods,
            risks=_sort_risks([*(known.risks if known else ()), risk]),
            tools=sorted({*(known.tools if known else ()), demand.tool}),
            having=everybody.restrict(set().union(*(holders[m] for m in methods))),
            everybody=everybody,
        )
    return list(grouped.values())


def list_shortages(document: Document) -> list[FieldError]:
    """One error for each queue and tier in which too few people have the method."""
    return [
        build_field_error(
            f"queues.{cover.queue}",
            f"{cover.tier} at {cover.level}: {lacking} who can decide here have"
            f" {cover.noun}",
        )
        for cover in list_covers(document)
        if (lacking := cover.shortage)
    ]


def load_holders() -> Mapping[StepUpMethod, AbstractSet[int]]:
    """The primary keys of the people who have each method now."""
    linked = set[int]()
    if step_up.is_provider_offered():
        rows = FederatedIdentity.objects.values_list("person_id", flat=True)
        linked.update(rows)
    with_password = {
        person.pk
        for person in Person.objects.filter(is_active=True).only("pk", "password")
        if person.has_usable_password()
    }
    keys = Passkey.objects.values_list("person_id", flat=True)
    apps = TotpDevice.objects.filter(confirmed_at__isnull=False)
    return {
        StepUpMethod.PASSWORD: with_password,
        StepUpMethod.TOTP: set(apps.values_list("person_id", flat=True)),
        StepUpMethod.PASSKEY: set(keys) if passkeys.is_offered() else set(),
        StepUpMethod.PROVIDER: linked - with_password,
    }


def _list_method_demands(
    document: Document,
) -> Iterator[tuple[staffing.Demand, Risk, tuple[StepUpMethod, ...]]]:
    for demand in staffing.list_demands(document):
        for risk in demand.step_up_risks:
            methods = document.desk.list_step_up_methods(risk)
            if len(methods) < len(StepUpMethod) and demand.steps:
                yield demand, risk, tuple(methods)


def _sort_risks(risks: Iterable[Risk]) -> list[Risk]:
    wanted = {*risks}
    return [risk for risk in Risk if risk in wanted]

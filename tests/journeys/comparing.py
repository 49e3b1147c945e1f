"""The rows of the gate beside those of the automaton: a handful of queries for all of a
run's proposals, or a run of many steps would do nothing but ask."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F

from journal import canonical
from journal.models import LogRecord
from policies.models import Person
from reviews.batches import membership
from reviews.models import ApprovalRequest, Decision, Execution, Proposal
from tests.journeys.automaton import Modelled

Rows = Sequence[tuple[Proposal, Modelled]]
MACHINES = ("request", "grant", "execution")


@dataclass(frozen=True)
class Found:
    """What the gate has, by proposal."""

    requests: dict[str, ApprovalRequest]
    votes: dict[str, dict[str, int | None]]
    executions: dict[str, Execution]


def found(proposals: Sequence[str]) -> Found:
    """All that is compared of these."""
    asked = ApprovalRequest.objects.filter(proposal__in=proposals)
    requests = {one.proposal_id: one for one in asked.select_related("proposal")}
    membership.load_sealed_versions(requests.values())
    granted = Execution.objects.filter(proposal__in=proposals).select_related("grant")
    return Found(requests, _votes(proposals), {one.proposal_id: one for one in granted})


def _votes(proposals: Sequence[str]) -> dict[str, dict[str, int | None]]:
    rows = Decision.objects.filter(
        request__proposal__in=proposals, version=F("request__version"), counts=True
    ).values_list("request__proposal", "reviewer__username", "step")
    votes: dict[str, dict[str, int | None]] = defaultdict(dict)
    for proposal, person, step in rows:
        votes[proposal][person] = step
    return votes


def check(rows: Rows, happened: Counter[str], people: Mapping[str, Person]) -> None:
    """Every row is as the automaton says, and so is every effect in the world."""
    now = found([proposal.pk for proposal, _ in rows])
    names = {person.public_id: name for name, person in people.items()}
    for proposal, modelled in rows:
        _check_request(now.requests[proposal.pk], modelled, names)
        assert now.votes.get(proposal.pk, {}) == modelled.votes
        _check_execution(now.executions.get(proposal.pk), modelled, happened)
    assert sum(happened.values()) == sum(modelled.effects for _, modelled in rows)


def _check_request(
    request: ApprovalRequest, modelled: Modelled, names: Mapping[str, str]
) -> None:
    version = request.sealed
    assert (request.status, request.version, request.tier) == (
        modelled.status,
        modelled.version,
        modelled.tier,
    )
    steps = [(step["role"], step["required"]) for step in version.steps]
    assert steps == modelled.steps
    assert {names[who] for who in version.carried} == modelled.carried
    assert {names[who] for who in version.escalated_by} == modelled.escalated_by


def _check_execution(
    execution: Execution | None, modelled: Modelled, happened: Counter[str]
) -> None:
    if execution is None:
        assert modelled.execution == ""
        return
    assert (execution.status, execution.grant.status) == (
        modelled.execution,
        modelled.grant,
    )
    assert execution.fence == modelled.fence
    assert happened[execution.idempotency_key] == modelled.effects <= 1


def check_log(proposals: Sequence[str]) -> None:
    """Each record of a machine begins where the one before ended [I3, I26]."""
    at: dict[tuple[str, str], str | None] = {}
    records = LogRecord.objects.filter(proposal__in=proposals).order_by("pk")
    for record in records:
        machine = record.kind.partition(".")[0]
        leaf = canonical.parse(bytes(record.leaf))
        if machine in MACHINES and leaf["to"] is not None:
            assert leaf["from"] == at.get((record.proposal, machine)), record.kind
            at[record.proposal, machine] = leaf["to"]

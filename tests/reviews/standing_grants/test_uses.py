"""What a standing grant lets run, how often and how long, and what it never does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from guardian.shortcuts import remove_perm

from journal import clock
from journal.models import LogRecord, OutboxMessage
from policies.models import Person, Queue, StandingGrant
from reviews.choices import ExecutionStatus
from reviews.executions import run
from reviews.models import Alarm
from reviews.standing_grants import issuance
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import propose
from tests.journal import history
from tests.reviews.standing_grants.allowing import (
    ASKS,
    allow_tags,
    execution_of,
    is_asked,
    issue,
    tag,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def allowed(gate: Gate) -> StandingGrant:
    """Three tags of the run t-1, allowed by Sue."""
    allow_tags(gate, uses=3)
    return issue(gate, tag(gate).request)


def test_a_call_runs_and_is_announced(gate: Gate, allowed: StandingGrant) -> None:
    proposal = tag(gate, "b")
    assert not is_asked(proposal)
    execution = execution_of(proposal)
    assert execution.grant.standing_grant == allowed
    assert execution.announced_in is not None
    assert OutboxMessage.objects.filter(
        topic="proposal.announced", subject=proposal.pk
    ).exists()
    rules = proposal.current.evaluation["rules"]
    assert rules[0]["id"] == "standing.grant"
    assert "use 1 of 3" in rules[0]["text"]
    assert "Sue" not in rules[0]["text"]
    record = LogRecord.objects.get(kind="proposal.submitted", proposal=proposal.pk)
    assert record.data["standing_grant"] == allowed.pk
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED


def test_the_budget_ends_it(gate: Gate, allowed: StandingGrant) -> None:
    asked = [is_asked(tag(gate, f"b{n}")) for n in range(5)]
    assert asked == [False, False, False, True, True]
    allowed.refresh_from_db()
    assert allowed.uses == 3


def test_time_ends_it(gate: Gate, allowed: StandingGrant) -> None:
    now = clock.now()
    make_older(allowed, timedelta(hours=1))
    assert now > StandingGrant.objects.get().expires_at
    assert is_asked(tag(gate, "b"))


def make_older(row: StandingGrant, age: timedelta) -> None:
    """A row never changes, so an older one takes its place."""
    row.issued_at, row.expires_at = row.issued_at - age, row.expires_at - age
    with history.past():
        StandingGrant.objects.filter(pk=row.pk).update(
            issued_at=row.issued_at,
            expires_at=row.expires_at,
            seal=row.compute_seal(),
        )


def test_a_use_in_time_runs_after_its_end(gate: Gate, allowed: StandingGrant) -> None:
    execution = execution_of(tag(gate, "b"))
    make_older(allowed, timedelta(hours=1))
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED


@pytest.mark.parametrize("other", ["run", "agent", "tool"])
def test_it_covers_one_agent_run_and_tool(
    gate: Gate, allowed: StandingGrant, other: str
) -> None:
    if other == "run":
        proposal = tag(gate, "b", thread=factories.new_thread())
    elif other == "agent":
        proposal = propose(
            factories.agent(gate.people["owen"], "robin"), "tag", args={"label": "b"}
        )
    else:
        proposal = propose(gate.agent)
    assert is_asked(proposal)
    allowed.refresh_from_db()
    assert allowed.uses == 0


def test_what_is_uncertain_is_asked(gate: Gate, allowed: StandingGrant) -> None:
    assert is_asked(tag(gate, "b", uncertain=0.5))


def test_a_rejected_action_is_not_allowed_by_it(
    gate: Gate, allowed: StandingGrant
) -> None:
    request = tag(gate, "b", uncertain=0.5).request
    factories.decide(request, gate.rita, "reject")
    again = tag(gate, "b", uncertain=0.5)
    assert again.repeats == request.proposal_id


def test_after_a_revocation_people_are_asked(
    gate: Gate, allowed: StandingGrant
) -> None:
    execution = execution_of(tag(gate, "b"))
    issuance.revoke_standing_grant(grant_id=allowed.pk, person=gate.sue)
    assert is_asked(tag(gate, "c"))
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "standing_revoked")
    assert not Alarm.objects.exists()


@pytest.mark.parametrize("how", ["inactive", "role", "queue"])
def test_who_lost_the_authority_allows_nothing_more(
    gate: Gate, allowed: StandingGrant, how: str
) -> None:
    execution = execution_of(tag(gate, "b"))
    if how == "inactive":
        Person.objects.filter(pk=gate.sue.pk).update(is_active=False)
    elif how == "role":
        gate.sue.groups.clear()
    else:
        remove_perm("policies.decide", gate.sue, Queue.objects.get(name="odd"))
    assert is_asked(tag(gate, "c"))
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "standing_revoked")


def test_who_is_concerned_by_a_proposal_allows_nothing(
    gate: Gate, allowed: StandingGrant
) -> None:
    named = {"kind": "user", "id": gate.sue.email}
    assert is_asked(tag(gate, "b", on_behalf_of=named))


@pytest.mark.parametrize("terms", [None, {"uses": 3}])
def test_a_tighter_policy_refuses_what_has_not_run(
    gate: Gate, allowed: StandingGrant, terms: dict[str, Any] | None
) -> None:
    execution = execution_of(tag(gate, "b"))
    if terms is None:
        document = factories.document_of_tests()
        del document["tools"]["tag"]["standing_grant"]
        document["rules"].append(ASKS)
        factories.policy(gate.people, document)
    else:
        more = {**ASKS, "id": "tag.more", "then": {"tier": "escalate"}}
        allow_tags(gate, more, **terms)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "policy_tightened")


def test_an_unchanged_policy_lets_it_run_after_another_version(
    gate: Gate, allowed: StandingGrant
) -> None:
    execution = execution_of(tag(gate, "b"))
    allow_tags(gate, uses=5)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED


def test_what_is_above_the_ceiling_of_who_allowed_it_is_asked(gate: Gate) -> None:
    document = factories.document_of_tests()
    pay = document["tools"]["pay"]
    pay |= {
        "risk": "medium",
        "profile": {"reversible": True, "blast_radius": 3, "monetary": True},
        "standing_grant": {},
    }
    document["rules"].append({**ASKS, "id": "pay.asks", "tools": ["pay"]})
    factories.policy(gate.people, document)
    Person.objects.filter(pk=gate.sue.pk).update(
        ceiling_minor=5000, ceiling_currency="USD"
    )
    issue(gate, propose(gate.agent, amount="49.00", customer="C-1").request)
    assert not is_asked(propose(gate.agent, amount="50.00", customer="C-2"))
    assert is_asked(propose(gate.agent, amount="51.00", customer="C-3"))


@pytest.mark.parametrize("arrived", [True, False])
def test_what_the_gate_found_in_a_call_is_looked_at(gate: Gate, arrived: bool) -> None:
    conflict = {"id": "a", "text": "x", "when": "args.label == 'b' && before.arrived"}
    allow_tags(
        gate,
        parts={
            "facts": ["arrived"],
            "reader": {"kind": "callable", "path": "tests.worlds.read"},
            "review": {"conflicts": [conflict]},
        },
    )
    worlds.WORLD["facts"] = {"arrived": arrived}
    issue(gate, tag(gate).request)
    assert is_asked(tag(gate, "b")) is arrived

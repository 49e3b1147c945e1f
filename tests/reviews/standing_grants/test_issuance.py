"""Who may allow calls in advance, from which request, and who may end it."""

from __future__ import annotations

import pytest

from journal import errors
from journal.models import LogRecord
from policies.models import StandingGrant
from reviews.choices import Scope, StopMode
from reviews.standing_grants import issuance
from reviews.stops import stops
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews.standing_grants.allowing import ASKS, allow_tags, issue, tag

pytestmark = pytest.mark.django_db


def test_a_supervisor_allows_the_calls_of_a_run(gate: Gate) -> None:
    allow_tags(gate, minutes=5, uses=3)
    request = tag(gate).request
    row = issue(gate, request)
    assert (row.agent, row.thread, row.tool) == ("riley", "t-1", "tag")
    assert (row.budget, row.role) == (3, "supervisor")
    assert (row.expires_at - row.issued_at).total_seconds() == 300
    request.refresh_from_db()
    assert request.status == "pending"
    record = LogRecord.objects.get(kind="standing_grant.issued")
    assert record.actor_id == gate.sue.public_id
    assert (record.request, record.data["budget"]) == (request.pk, 3)
    assert "fifty tags" not in str(record.data)


def test_the_policy_names_the_role(gate: Gate) -> None:
    allow_tags(gate)
    request = tag(gate).request
    with pytest.raises(errors.NotPermitted, match="Only a supervisor"):
        issue(gate, request, person=gate.rita)
    allow_tags(gate, role="reviewer")
    other = tag(gate, thread=factories.new_thread()).request
    assert issue(gate, other, person=gate.rita).role == "reviewer"


@pytest.mark.parametrize("name", ["otto", "owen", "adam"])
def test_who_may_not_decide_allows_nothing(gate: Gate, name: str) -> None:
    allow_tags(gate)
    request = tag(gate).request
    with pytest.raises(errors.NotPermitted):
        issue(gate, request, person=gate.people[name])


def test_who_is_concerned_allows_nothing(gate: Gate) -> None:
    allow_tags(gate)
    agent = factories.agent(gate.sue, "sues")
    request = propose(agent, "tag", args={"label": "a"}).request
    with pytest.raises(errors.NotPermitted, match="You own this agent"):
        issue(gate, request)


def test_a_tool_without_terms_is_never_allowed(gate: Gate) -> None:
    request = propose(gate.agent).request
    with pytest.raises(errors.Conflict, match="no standing grant for this tool"):
        issue(gate, request)


@pytest.mark.parametrize(
    ("then", "why"),
    [
        ({"tier": "escalate"}, "does not ask one reviewer"),
        ({"tier": "approve", "step_up": True}, "to look at"),
        ({"tier": "approve", "reason": True}, "to look at"),
        ({"tier": "approve", "flag": "odd"}, "to look at"),
        ({"risk": "high"}, "always required"),
        ({"tier": "approve", "step": {"role": "reviewer", "required": 1}}, "check"),
    ],
)
def test_what_the_policy_wants_looked_at_is_not_covered(
    gate: Gate, then: dict[str, object], why: str
) -> None:
    allow_tags(gate, {**ASKS, "id": "tag.more", "then": then})
    with pytest.raises(errors.Conflict, match=why):
        issue(gate, tag(gate).request)


def test_a_check_of_the_gate_is_not_covered(gate: Gate) -> None:
    allow_tags(gate)
    with pytest.raises(errors.Conflict, match="to look at"):
        issue(gate, tag(gate, uncertain=0.5).request)


def test_one_is_in_force_at_a_time(gate: Gate) -> None:
    allow_tags(gate)
    first, second = tag(gate).request, tag(gate, "b").request
    issue(gate, first)
    with pytest.raises(errors.Conflict, match="is in force"):
        issue(gate, second)


def test_a_decided_request_allows_nothing(gate: Gate) -> None:
    allow_tags(gate)
    request = tag(gate).request
    decide(request, gate.rita)
    with pytest.raises(errors.Conflict, match="no longer pending"):
        issue(gate, request)


def test_a_paused_run_is_allowed_nothing(gate: Gate) -> None:
    allow_tags(gate)
    request = tag(gate).request
    stops.create_stop(
        scope=Scope.TOOL, key="tag", mode=StopMode.PAUSED, person=gate.sue, reason="-"
    )
    with pytest.raises(errors.Conflict, match="stopped or paused"):
        issue(gate, request)


def test_a_reason_is_needed(gate: Gate) -> None:
    allow_tags(gate)
    with pytest.raises(errors.TextMissing):
        issue(gate, tag(gate).request, reason="  ")


@pytest.mark.parametrize("name", ["sue", "tom", "alma"])
def test_it_is_revoked_once(gate: Gate, name: str) -> None:
    allow_tags(gate)
    row = issue(gate, tag(gate).request)
    person = gate.people[name]
    issuance.revoke_standing_grant(grant_id=row.pk, person=person)
    row.refresh_from_db()
    assert row.revoked_by == person
    record = LogRecord.objects.get(kind="standing_grant.revoked")
    assert record.actor_id == person.public_id
    with pytest.raises(errors.Conflict):
        issuance.revoke_standing_grant(grant_id=row.pk, person=person)


def test_an_auditor_revokes_nothing(gate: Gate) -> None:
    allow_tags(gate)
    row = issue(gate, tag(gate).request)
    with pytest.raises(errors.NotPermitted):
        issuance.revoke_standing_grant(grant_id=row.pk, person=gate.people["otto"])
    assert StandingGrant.objects.get().revoked_at is None


def test_of_nothing_there_is_nothing_to_revoke(gate: Gate) -> None:
    with pytest.raises(errors.NotFound):
        issuance.revoke_standing_grant(grant_id="sg-none", person=gate.sue)

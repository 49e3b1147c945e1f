from __future__ import annotations

from typing import Any

import pytest
from guardian.shortcuts import assign_perm, remove_perm

from journal import errors
from journal.models import LogRecord
from policies.choices import Role
from policies.models import Person, Queue
from reviews.choices import (
    VERDICT_SPECS,
    ExecutionStatus,
    GrantStatus,
    RequestStatus,
    Verdict,
)
from reviews.decisions import decide as decisions
from reviews.models import Decision
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose


def test_one_reviewer_settles_an_approve_request(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED
    grant = request.proposal.grants.get()
    assert grant.status == GrantStatus.LIVE
    assert grant.action_hash == request.action_hash
    assert grant.execution.status == ExecutionStatus.QUEUED


def test_escalate_needs_two_different_supervisors(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue)
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING
    with pytest.raises(errors.NotPermitted):
        decide(request, gate.sue)
    decide(request, gate.sam)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED


def test_a_reviewer_cannot_decide_what_needs_supervisors(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    with pytest.raises(errors.NotPermitted):
        decide(request, gate.rita)
    assert not Decision.objects.exists()


def test_a_refused_decision_is_a_log_record(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    with pytest.raises(errors.NotPermitted):
        decide(request, gate.rita)
    record = LogRecord.objects.get(kind="decision.refused")
    assert record.actor_id == gate.rita.public_id


def test_reject_settles_and_nothing_is_granted(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita, "reject")
    request.refresh_from_db()
    assert request.status == RequestStatus.REJECTED
    assert not request.proposal.grants.exists()


def test_reject_needs_a_reason(gate: Gate) -> None:
    request = propose(gate.agent).request
    with pytest.raises(errors.ReasonMissing):
        decide(request, gate.rita, "reject", reason_code="")


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        ("approve", "wrong_target"),
        ("modify", "duplicate"),
        ("reject", "verified"),
        ("escalate", "skip"),
        ("reject", "because"),
    ],
)
def test_a_reason_fits_its_verdict(gate: Gate, verdict: str, code: str) -> None:
    request = propose(gate.agent).request
    args = {"customer": "C-1", "amount": "20.00", "currency": "USD"}
    more = {"args": args} if verdict == "modify" else {}
    with pytest.raises(errors.ReasonMissing) as refused:
        decide(request, gate.rita, verdict, reason_code=code, **more)
    (error,) = refused.value.errors
    assert error["path"] == "reason_code"
    known = "not a known reason" if code == "because" else f"{code} does not fit"
    assert known in error["message"]
    fits = VERDICT_SPECS[Verdict(verdict)].reasons[0]
    assert f"use one of: {fits}, " in error["message"]
    assert not Decision.objects.exists()
    decide(request, gate.rita, verdict, reason_code=fits, **more)


def test_an_old_version_cannot_be_decided(gate: Gate) -> None:
    request = propose(gate.agent).request
    seen = factories.said(request, gate.rita)
    factories.revise(gate.agent, request.proposal, amount="60.00")
    with pytest.raises(errors.StaleVersion):
        decisions.decide_request(seen)


def test_an_edit_is_the_editors_own_approval(gate: Gate) -> None:
    request = propose(gate.agent).request
    args = {"customer": "C-1", "amount": "20.00", "currency": "USD"}
    decide(request, gate.rita, "modify", args=args)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED
    assert request.version == 2
    grant = request.proposal.grants.get()
    assert grant.revision.args["amount"] == "20.00"
    assert grant.revision.author_id == gate.rita.public_id


def test_an_edit_that_raises_the_tier_goes_there(gate: Gate) -> None:
    request = propose(gate.agent).request
    args = {"customer": "C-1", "amount": "600.00", "currency": "USD"}
    decide(request, gate.rita, "modify", args=args)
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING
    assert request.tier == "escalate"
    decide(request, gate.sue)
    decide(request, gate.sam)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED


def test_a_supervisor_cuts_the_amount_and_that_is_enough(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    args = {"customer": "C-1", "amount": "449.50", "currency": "USD"}
    decide(request, gate.sue, "modify", args=args)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED
    assert LogRecord.objects.filter(kind="decision.tier_lowered").exists()


def test_an_edit_into_a_block_is_refused_and_keeps_everything(gate: Gate) -> None:
    request = propose(gate.agent).request
    args = {"customer": "C-1", "amount": "20000.00", "currency": "USD"}
    with pytest.raises(errors.PolicyViolation):
        decide(request, gate.rita, "modify", args=args)
    request.refresh_from_db()
    assert (request.status, request.version) == (RequestStatus.PENDING, 1)


def test_escalation_adds_a_supervisor_and_bars_who_escalated(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita, "escalate")
    request.refresh_from_db()
    steps = request.sealed.steps
    assert [step["role"] for step in steps] == ["reviewer", "supervisor"]
    with pytest.raises(errors.AlreadyEscalated):
        decide(request, gate.rita)
    decide(request, gate.sue)
    decide(request, gate.tom)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED


def test_the_agents_owner_cannot_decide(gate: Gate) -> None:
    owner = factories.person("olga", Role.SUPERVISOR)
    agent = factories.agent(owner, "other")
    for queue in Queue.objects.all():
        assign_perm("policies.decide", owner, queue)
    request = propose(agent).request
    with pytest.raises(errors.NotPermitted):
        decide(request, owner)


def test_who_is_named_in_the_chain_cannot_decide(gate: Gate) -> None:
    behalf = {"kind": "user", "id": "rita", "chain": [gate.tom.email]}
    request = propose(gate.agent, on_behalf_of=behalf).request
    for person in (gate.rita, gate.tom):
        with pytest.raises(errors.NotPermitted):
            decide(request, person)
    decide(request, gate.sue)


def test_after_the_deadline_a_verdict_has_no_effect(gate: Gate) -> None:
    request = propose(gate.agent).request
    factories.overdue(request)
    with pytest.raises(errors.RequestExpired):
        decide(request, gate.rita)
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING


def limited(person: Person, minor: int) -> None:
    Person.objects.filter(pk=person.pk).update(
        ceiling_minor=minor, ceiling_currency="USD"
    )


def test_an_amount_above_the_persons_ceiling_is_refused(gate: Gate) -> None:
    limited(gate.rita, 1000)
    request = propose(gate.agent).request
    with pytest.raises(errors.NotPermitted):
        decide(request, gate.rita)


def test_an_edit_above_ones_own_ceiling_goes_to_who_may_decide_it(gate: Gate) -> None:
    limited(gate.rita, 5000)
    request = propose(gate.agent).request
    args = {"customer": "C-1", "amount": "60.00", "currency": "USD"}
    decide(request, gate.rita, "modify", args=args)
    request.refresh_from_db()
    assert (request.status, request.version) == (RequestStatus.PENDING, 2)
    assert request.sealed.steps == [{"role": "reviewer", "required": 1}]
    assert not Decision.objects.get().counts
    with pytest.raises(errors.NotPermitted):
        decide(request, gate.rita)
    decide(request, gate.tom)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED
    grant = request.proposal.grants.get()
    assert grant.revision.args["amount"] == "60.00"


def test_an_edit_that_lowers_to_what_is_above_ones_ceiling_counts_for_nobody(
    gate: Gate,
) -> None:
    limited(gate.rita, 1000)
    request = propose(gate.agent).request
    args = {"customer": "C-1", "amount": "30.00", "currency": "USD"}
    decide(request, gate.rita, "modify", args=args)
    request.refresh_from_db()
    assert (request.status, request.version) == (RequestStatus.PENDING, 2)
    assert not Decision.objects.get().counts


def test_an_edit_into_a_queue_that_is_not_ones_own_goes_there(gate: Gate) -> None:
    document = factories.document_of_tests()
    rule: dict[str, Any] = {"id": "pay.mail", "text": "To mail.", "tools": ["pay"]}
    rule |= {"when": "args.amount == 6000", "then": {"queue": "mail"}}
    document["rules"].append(rule)
    factories.policy(gate.people, document)
    remove_perm("policies.decide", gate.rita, Queue.objects.get(name="mail"))
    request = propose(gate.agent).request
    args = {"customer": "C-1", "amount": "60.00", "currency": "USD"}
    decide(request, gate.rita, "modify", args=args)
    request.refresh_from_db()
    assert (request.status, request.queue.name) == (RequestStatus.PENDING, "mail")
    assert not Decision.objects.get().counts
    decide(request, gate.tom)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED


def test_a_reviewer_lowers_no_tier_they_could_not_have_decided(gate: Gate) -> None:
    """Raising is routed; lowering stays refused."""
    request = propose(gate.agent).request
    decide(request, gate.rita, "escalate")
    args = {"customer": "C-1", "amount": "20.00", "currency": "USD"}
    with pytest.raises(errors.PolicyViolation) as refused:
        decide(request, gate.tom, "modify", args=args)
    assert "fewer people" in refused.value.errors[0]["message"]


def test_escalate_tier_needs_a_fresh_proof_of_identity(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    with pytest.raises(errors.ReauthenticationRequired):
        decide(request, gate.sue, step_up=None)

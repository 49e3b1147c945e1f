"""Decided, started, outcome: what the page says became of a decision."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from agents import acknowledgements, representation
from agents.models import Agent
from journal import clock, errors
from reviews.choices import ExecutionStatus
from reviews.executions import redeem, run
from reviews.grants import grants
from reviews.models import Execution, Grant, Proposal
from tests import worlds
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import decide, propose
from tests.markup import read_text
from tests.reviews import states


def read_progress(as_: SignIn, proposal: Proposal) -> str:
    page = as_("rita").get(f"/requests/{proposal.request.pk}/")
    return read_text(page, "progress")


def acknowledge(proposal: Proposal, outcome: str) -> None:
    agent = Agent.objects.get(slug=proposal.agent)
    acknowledgements.acknowledge_outcome(
        agent=agent, proposal_id=proposal.pk, outcome=outcome
    )


@pytest.fixture
def letter(gate: Gate) -> Execution:
    """What its agent performs itself, approved."""
    args = {"to": "a friend", "text": "hello"}
    request = propose(gate.agent, "write", args=args).request
    decide(request, gate.rita, reason_code="verified")
    return Execution.objects.select_related("grant").get(proposal=request.proposal)


def test_an_approval_that_the_agent_has_not_used(letter, as_: SignIn) -> None:
    said = read_progress(as_, letter.proposal)
    assert "Not yet: the agent has not used its permit" in said
    assert "Outcome None yet" in said


def test_an_approval_that_the_agent_used(letter, as_: SignIn) -> None:
    redeem.redeem_grant(token=grants.load_token(letter.grant_id), agent="riley")
    said = read_progress(as_, letter.proposal)
    assert "The agent used its permit" in said
    assert "Outcome None yet" in said


def test_an_effect_whose_outcome_the_agent_acknowledges(
    gate: Gate, as_: SignIn
) -> None:
    execution = states.queued(gate)
    proposal = execution.proposal
    assert "no worker has started it" in read_progress(as_, proposal)
    run.run_execution(execution.pk)
    assert "A worker started attempt 1" in read_progress(as_, proposal)
    assert "has not acknowledged it yet" in read_progress(as_, proposal)
    body = representation.build_proposal_json(Proposal.objects.get(pk=proposal.pk))
    acknowledge(proposal, body["outcome"])
    assert "The agent acknowledged it at" in read_progress(as_, proposal)


def test_what_a_check_refused(gate: Gate, as_: SignIn) -> None:
    execution = states.queued(gate)
    worlds.WORLD["preconditions"] = {"row_version": 2}
    run.run_execution(execution.pk)
    said = read_progress(as_, execution.proposal)
    assert "A worker started attempt 1" in said
    assert "Refused, nothing was executed" in said


def test_a_permit_that_was_never_used(letter, as_: SignIn) -> None:
    past = clock.now() - timedelta(minutes=2)
    Grant.objects.filter(pk=letter.grant_id).update(expires_at=past)
    with pytest.raises(errors.GrantExpired):
        redeem.redeem_grant(token=grants.load_token(letter.grant_id), agent="riley")
    said = read_progress(as_, letter.proposal)
    assert "Never: it was refused" in said
    assert "Reason The execution window has ended." in said


def test_a_verifier_is_not_quoted_as_counterseal(letter, as_: SignIn) -> None:
    Execution.objects.filter(pk=letter.pk).update(
        status=ExecutionStatus.REFUSED,
        code="verifier",
        detail="Approve it again.",
        finished_at=clock.now(),
    )
    assert "Reason" not in read_progress(as_, letter.proposal)
    url = f"/requests/{letter.proposal.request.pk}/"
    source = as_("rita").get(url).content.decode()
    assert 'aria-label="Verifier response, not checked"' in source


def test_an_outcome_that_a_person_must_record(gate: Gate, as_: SignIn) -> None:
    said = read_progress(as_, states.unknown(gate).proposal)
    assert "Outcome Unknown: a look-up or a supervisor records it" in said


def test_a_rejection_is_acknowledged_by_the_agent(gate: Gate, as_: SignIn) -> None:
    proposal = states.rejected(gate).proposal
    assert "has not acknowledged it yet" in read_progress(as_, proposal)
    acknowledge(proposal, representation.compute_settled_id(proposal.pk))
    said = read_progress(as_, proposal)
    assert re.search(r"Agent [^A]*The agent acknowledged it", said)


def test_a_request_without_a_decision_has_no_progress(gate: Gate, as_: SignIn) -> None:
    page = as_("rita").get(f"/requests/{states.expired(gate).pk}/")
    assert "Started" not in read_text(page)

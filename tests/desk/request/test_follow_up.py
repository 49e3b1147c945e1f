"""What became of a decision is told step by step, with what the agent proposed next."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.urls import reverse

from agents import acknowledgements, representation
from agents.models import Agent
from journal import clock, errors
from reviews.choices import ExecutionStatus
from reviews.executions import redeem, run
from reviews.grants import tokens
from reviews.models import ApprovalRequest, Execution, Grant, Proposal
from tests import factories, worlds
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.desk.request.test_views import url
from tests.factories import decide, propose
from tests.markup import read_page, read_text
from tests.reviews import states

ASKS = "?part=following"


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
    redeem.redeem_grant(token=tokens.load_token(letter.grant_id), agent="riley")
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
        redeem.redeem_grant(token=tokens.load_token(letter.grant_id), agent="riley")
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


def rejected(gate: Gate) -> ApprovalRequest:
    request = propose(gate.agent).request
    return factories.decide(request, gate.people["rita"], "reject")


def test_the_next_proposal_of_the_run_is_linked(gate: Gate, as_: SignIn) -> None:
    request = rejected(gate)
    propose(gate.agent, amount="30.00", thread="another")
    propose(gate.agent, "look")
    following = propose(gate.agent, amount="20.00")
    cut = _following(read_page(as_("rita").get(url(request))))
    assert '<a href="/agents/riley/">riley</a> then proposed:' in cut
    assert url(following.request) in cut
    assert "20.00" in cut


def test_what_replaced_it_is_linked_in_another_run_too(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent).request
    later = propose(gate.agent, thread="another", supersedes=request.proposal_id)
    cut = _following(read_page(as_("rita").get(url(request))))
    assert url(later.request) in cut


def test_what_nobody_is_asked_about_leads_to_the_run(gate: Gate, as_: SignIn) -> None:
    request = rejected(gate)
    propose(gate.agent, "look")
    cut = _following(read_page(as_("otto").get(url(request))))
    assert 'data-testid="not-asked"' in cut
    assert f'href="{reverse("agents:thread", args=["riley", "t-1"])}"' in cut


def test_what_was_there_before_is_not_called_the_next(gate: Gate, as_: SignIn) -> None:
    first = propose(gate.agent).request
    propose(gate.agent, amount="20.00")
    factories.decide(first, gate.people["rita"], "reject")
    assert "then proposed" not in read_page(as_("rita").get(url(first)))


def test_an_open_page_asks_until_it_is_there(gate: Gate, as_: SignIn) -> None:
    request = rejected(gate)
    client = as_("rita", **HTMX)
    live = url(request, "live") + ASKS
    assert f'hx-get="{live}"' in read_page(client.get(url(request)))
    assert client.get(live).status_code == 204
    propose(gate.agent, amount="20.00")
    answer = client.get(live)
    assert answer.status_code == 286
    assert "then proposed" in read_page(answer)


def test_an_open_page_asks_no_longer_than_two_minutes(gate: Gate, as_: SignIn) -> None:
    request = rejected(gate)
    long_ago = clock.now() - timedelta(minutes=3)
    ApprovalRequest.objects.filter(pk=request.pk).update(settled_at=long_ago)
    client = as_("rita", **HTMX)
    assert "hx-get" not in _following(read_page(client.get(url(request))))
    answer = client.get(url(request, "live") + ASKS)
    assert (answer.status_code, answer.content.strip()) == (286, b"")


def _following(source: str) -> str:
    _, found, after = source.partition('id="following"')
    return after[: after.index("</p>")] if found else ""


def test_of_a_request_that_waits_nothing_follows(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent).request
    propose(gate.agent, amount="20.00")
    source = read_page(as_("tom").get(url(request)))
    assert "then proposed" not in source
    assert 'id="following"' not in source

from __future__ import annotations

import pytest

from agents import proposals
from agents.choices import ThreadResult
from journal import errors, log
from journal.models import LogRecord
from policies.models import Observation
from reviews.choices import GrantStatus
from reviews.executions import claims, redeem
from reviews.executions import record as executions
from reviews.executions.rechecks import Refusal
from reviews.grants import grants, tokens
from reviews.models import Execution, Grant
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states
from tests.reviews.executions.attempts import deployment


def test_the_providers_key_is_a_function_of_proposal_and_bytes(gate: Gate) -> None:
    """I23: the same for every attempt, another for other bytes or another proposal."""
    request = propose(gate.agent).request
    factories.revise(gate.agent, request.proposal)
    decide(request, gate.rita)
    execution = Execution.objects.get()
    same = grants.compute_idempotency_key(request.proposal_id, request.action_hash)
    assert execution.idempotency_key == same
    first, *others = [
        grants.compute_idempotency_key(request.proposal_id, r.action_hash)
        for r in request.proposal.revisions.order_by("-number")
    ]
    assert first == same
    assert same not in others
    assert grants.compute_idempotency_key("p-other", request.action_hash) != same
    claim = claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    factories.lapsed(execution)
    again = claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    assert claim is not None
    assert again is not None
    assert claim.call.idempotency_key == again.call.idempotency_key == same


def test_the_agent_takes_back_what_is_to_be_tried_once_more(gate: Gate) -> None:
    execution = states.requeued(gate)
    states.withdraw(gate.agent, execution.proposal)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "withdrawn_by_agent")
    assert execution.grant.status == GrantStatus.SPENT
    sums = Observation.objects.filter(proposal=execution.proposal_id, counts=True)
    assert not sums.exclude(measure__startswith="event:")


def test_what_an_agent_gave_back_ends_with_its_run(gate: Gate) -> None:
    execution, token = deployment(gate)
    claim = claims.claim_execution(
        execution_id=execution.pk, actor=log.SYSTEM, redeeming=True
    )
    assert claim is not None
    executions.release_claim(
        claim=claim, refusal=Refusal("paused", "", retryable=True, costs_attempt=False)
    )
    proposals.finish_thread(
        agent=gate.agent, name=execution.proposal.thread, result=ThreadResult.COMPLETED
    )
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "thread_finished")
    with pytest.raises(errors.PreconditionFailed) as refusal:
        redeem.redeem_grant(token=token, agent="riley")
    assert refusal.value.facts == {"reason": "thread_finished"}


def test_the_log_never_holds_a_token(gate: Gate) -> None:
    request = propose(gate.agent, "deploy").request
    decide(request, gate.sue)
    decide(request, gate.sam)
    token = tokens.load_token(Grant.objects.get().pk)
    for record in LogRecord.objects.all():
        assert token.encode() not in bytes(record.leaf)

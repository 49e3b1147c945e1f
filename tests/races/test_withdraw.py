"""The agent takes back what people decide, what is claimed and what is stopped."""

from __future__ import annotations

from functools import partial

import pytest

from agents import proposals
from agents.choices import ThreadResult
from journal import errors, log
from journal.models import LogRecord
from reviews import locks, transitions
from reviews.choices import ExecutionStatus, GrantStatus, RequestStatus
from reviews.decisions import decide as decisions
from reviews.executions import claims, run
from reviews.grants import grants
from reviews.models import ApprovalRequest, Decision, Execution, Grant, Proposal
from tests import worlds
from tests.conftest import Gate
from tests.factories import decide, propose, said
from tests.races.together import at_once, before, while_held

pytestmark = [pytest.mark.django_db(transaction=True)]


def withdrawing(gate: Gate, proposal: Proposal) -> partial[None]:
    return partial(
        proposals.withdraw_proposal, agent=gate.agent, proposal_id=proposal.pk
    )


def check_consistent(proposal: Proposal) -> ApprovalRequest:
    """A grant exists only under a yes; a grant taken back never runs."""
    request = ApprovalRequest.objects.get(proposal=proposal)
    yes = request.status == RequestStatus.AUTHORIZED
    assert Grant.objects.filter(proposal=proposal).count() == int(yes)
    if yes:
        execution = Execution.objects.get(proposal=proposal)
        revoked = execution.grant.status == GrantStatus.REVOKED
        assert revoked == (execution.status == ExecutionStatus.REFUSED)
    return request


def test_of_a_verdict_and_a_withdrawal_the_first_one_counts(gate: Gate) -> None:
    for number in range(15):
        proposal = propose(gate.agent, customer=f"C-{number}")
        yes, back = at_once(
            partial(decisions.decide_request, said(proposal.request, gate.rita)),
            withdrawing(gate, proposal),
        )
        request = check_consistent(proposal)
        assert back.won  # of the question, or else of the grant that answered it
        assert yes.won == (request.status == RequestStatus.AUTHORIZED)
        assert yes.won or isinstance(yes.refusal, errors.RequestWithdrawn)


def test_a_withdrawal_right_before_the_lock_leaves_nothing_to_decide(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = propose(gate.agent)
    seen = said(proposal.request, gate.rita)
    before(monkeypatch, locks, "lock_request_or_canary", withdrawing(gate, proposal))
    with pytest.raises(errors.RequestWithdrawn):
        decisions.decide_request(seen)
    assert check_consistent(proposal).status == RequestStatus.WITHDRAWN
    assert not Decision.objects.exists()


def test_a_withdrawal_during_the_verdict_revokes_the_grant(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = propose(gate.agent)
    rival = while_held(monkeypatch, grants, "new_grant_id", withdrawing(gate, proposal))
    decide(proposal.request, gate.rita)
    assert rival.result.won
    assert check_consistent(proposal).status == RequestStatus.AUTHORIZED
    assert Grant.objects.get().status == GrantStatus.REVOKED
    run.run_execution(Execution.objects.get().pk)
    assert worlds.effects() == []


def test_of_a_claim_and_a_withdrawal_the_first_one_counts(gate: Gate) -> None:
    for number in range(15):
        proposal = propose(gate.agent, customer=f"C-{number}")
        decide(proposal.request, gate.rita)
        execution = Execution.objects.get(proposal=proposal)
        happened = len(worlds.effects())
        _, back = at_once(
            partial(run.run_execution, execution.pk), withdrawing(gate, proposal)
        )
        check_consistent(proposal)
        execution.refresh_from_db()
        ran = execution.status == ExecutionStatus.SUCCEEDED
        assert back.won != ran
        assert len(worlds.effects()) - happened == int(ran)
        assert back.won or isinstance(
            back.refusal, errors.Conflict | errors.AlreadyDecided
        )


def test_a_claim_right_before_the_revocation_keeps_the_grant(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = propose(gate.agent)
    decide(proposal.request, gate.rita)
    execution = Execution.objects.get()
    claim = partial(claims.claim_execution, execution_id=execution.pk, actor=log.SYSTEM)
    rival = before(monkeypatch, transitions.grant, "apply", claim)
    with pytest.raises(errors.Conflict):
        withdrawing(gate, proposal)()
    assert rival.result.value is not None
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.CLAIMED
    assert execution.grant.status == GrantStatus.SPENT


def test_finishing_a_thread_against_its_proposals(gate: Gate) -> None:
    """Nothing of a finished thread waits; what came too late is told so."""
    for number in range(8):
        name = f"t-{number}"
        propose(gate.agent, thread=name, customer=f"C-{number}")
        results = at_once(
            partial(
                proposals.finish_thread,
                agent=gate.agent,
                name=name,
                result=ThreadResult.GAVE_UP,
            ),
            partial(propose, gate.agent, thread=name, customer=f"D-{number}"),
            partial(propose, gate.agent, "look", thread=name),
        )
        assert results[0].won
        late = [r.refusal for r in results if r.refusal]
        assert {type(error) for error in late} <= {errors.Conflict}
        waiting = ApprovalRequest.objects.filter(proposal__thread=name)
        assert {row.status for row in waiting} == {RequestStatus.WITHDRAWN}


def test_two_withdrawals_are_one(gate: Gate) -> None:
    for number in range(6):
        proposal = propose(gate.agent, customer=f"C-{number}")
        results = at_once(*[withdrawing(gate, proposal)] * 3)
        assert all(r.won for r in results)  # the second and third change nothing
        said_so = LogRecord.objects.filter(
            kind="request.withdrawn", proposal=proposal.pk
        )
        assert said_so.count() == 1

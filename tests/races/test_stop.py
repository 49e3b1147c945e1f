"""A stop against everything that is on its way [I24]."""

from __future__ import annotations

import threading
from functools import partial

import pytest
from django.db import connection

from hitl import tasks
from journal import errors
from journal.models import OutboxMessage
from reviews import locks
from reviews.choices import ExecutionStatus, RequestStatus, Scope
from reviews.decisions import decide as decisions
from reviews.decisions import revoke
from reviews.executions import run
from reviews.models import ApprovalRequest, Decision, Execution, Grant, Proposal, Stop
from reviews.requests import proposals
from reviews.stops import scope, stops
from tests import worlds
from tests.conftest import Gate
from tests.factories import decide, propose, said
from tests.races.together import PATIENCE_S, at_once, before
from tests.stack import wait_until

pytestmark = [pytest.mark.django_db(transaction=True)]


def stopping(gate: Gate) -> partial[Stop]:
    return partial(
        stops.create_stop, scope=Scope.AGENT, key="riley", person=gate.sue, reason="odd"
    )


def enforce() -> None:
    for message in OutboxMessage.objects.filter(topic="stop.raised", done_at=None):
        tasks.enforce_stop(message.pk)


def statuses() -> set[str]:
    return set(ApprovalRequest.objects.values_list("status", flat=True))


def test_a_stop_right_before_the_verdict_leaves_nothing_to_decide(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = propose(gate.agent).request
    seen = said(request, gate.rita)
    before(monkeypatch, locks, "lock_request_or_canary", stopping(gate))
    with pytest.raises(errors.RequestWithdrawn):
        decisions.decide_request(seen)
    assert not Decision.objects.exists()
    enforce()
    assert statuses() == {RequestStatus.WITHDRAWN}


def test_what_is_submitted_while_the_stop_is_enforced_does_not_stay(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had looked at the switches before the stop, and commits after the sweep."""
    under, swept = scope.list_proposals_to_withdraw, threading.Event()

    def listed(stop: Stop) -> list[str]:
        found = under(stop)
        swept.set()
        return found

    def stop_and_sweep() -> None:
        stopping(gate)()
        sweeping.start()
        assert swept.wait(PATIENCE_S)

    monkeypatch.setattr(scope, "list_proposals_to_withdraw", listed)
    sweeping = threading.Thread(target=enforcing)
    before(monkeypatch, proposals, "govern", stop_and_sweep)
    request = propose(gate.agent).request
    sweeping.join(PATIENCE_S)
    request.refresh_from_db()
    assert request.status == RequestStatus.WITHDRAWN
    with pytest.raises(errors.AgentStopped):
        propose(gate.agent)


def enforcing() -> None:
    """`enforce` on a connection of its own."""
    try:
        enforce()
    finally:
        connection.close()


def test_many_who_propose_while_it_is_stopped_leave_nothing_waiting(
    gate: Gate,
) -> None:
    asking = [
        partial(propose, gate.agent, thread=f"t-{n}", customer=f"C-{n}")
        for n in range(6)
    ]
    *results, stopped, _ = at_once(*asking, stopping(gate), sweeping_soon)
    assert stopped.won
    assert {type(r.refusal) for r in results if r.refusal} <= {errors.AgentStopped}
    assert RequestStatus.PENDING not in statuses()


def sweeping_soon() -> None:
    """As the worker does it: as soon as the promise is there."""
    wait_until(OutboxMessage.objects.filter(topic="stop.raised").exists, PATIENCE_S)
    enforce()


def test_what_is_settled_during_the_withdrawal_does_not_hold_up_the_rest(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (propose(gate.agent, customer=c) for c in ("C-1", "C-2"))
    no = partial(decisions.decide_request, said(first.request, gate.rita, "reject"))
    stop = stopping(gate)

    def reject_first() -> None:
        rejecting(no)

    def rejecting(call: partial[ApprovalRequest]) -> None:
        # In time: the verdict's own look at the switches came before the stop.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stops, "find_strictest_mode", lambda *_: None)
            call()

    stop()
    before(monkeypatch, proposals, "withdraw_stopped_proposal", reject_first)
    enforce()
    first.request.refresh_from_db()
    second.request.refresh_from_db()
    assert first.request.status == RequestStatus.REJECTED
    assert second.request.status == RequestStatus.WITHDRAWN
    assert OutboxMessage.objects.get(topic="stop.raised").done_at is not None


def test_a_stop_against_verdicts_claims_and_proposals(gate: Gate) -> None:
    """Whatever the order: in the end nothing waits that was there, nothing runs that
    had not begun, and every effect had its grant."""
    waiting = [propose(gate.agent, customer=f"C-{n}") for n in range(3)]
    granted = [propose(gate.agent, customer=f"D-{n}") for n in range(3)]
    for proposal in granted:
        decide(proposal.request, gate.rita)
    rows = Execution.objects.filter(proposal__in=granted)
    *results, stopped = at_once(
        *[
            partial(decisions.decide_request, said(p.request, gate.tom))
            for p in waiting
        ],
        *[partial(run.run_execution, row.pk) for row in rows],
        partial(propose, gate.agent, "look", thread="t-9"),
        stopping(gate),
    )
    assert stopped.won
    refusals = {type(r.refusal) for r in results if r.refusal}
    assert refusals <= {errors.RequestWithdrawn, errors.AgentStopped}
    enforce()
    check_halted()


def check_halted() -> None:
    for row in Execution.objects.all():
        run.run_execution(row.pk)
    assert RequestStatus.PENDING not in statuses()
    left = set(Execution.objects.values_list("status", flat=True))
    assert left <= {ExecutionStatus.SUCCEEDED, ExecutionStatus.REFUSED}
    done = Execution.objects.filter(status=ExecutionStatus.SUCCEEDED)
    assert len(worlds.effects()) == done.count()
    for row in done.filter(proposal__request__isnull=False):
        assert Proposal.objects.get(pk=row.proposal_id).request.status == "authorized"


def revoking(gate: Gate) -> partial[Stop]:
    key = gate.rita.public_id
    return partial(
        stops.create_stop,
        scope=Scope.REVIEWER,
        key=key,
        person=gate.sue,
        reason="stolen",
    )


def test_a_claim_against_the_revocation_of_its_approval(gate: Gate) -> None:
    """Exactly one wins: it ran before, or its grant is revoked; never both."""
    for number in range(8):
        request = propose(gate.agent, customer=f"C-{number}").request
        decide(request, gate.rita)
        row = Execution.objects.get(proposal=request.proposal_id)
        taken = partial(
            revoke.revoke_approval,
            proposal_id=request.proposal_id,
            reviewer=gate.rita.public_id,
        )
        ran, revoked = at_once(partial(run.run_execution, row.pk), taken)
        assert ran.won
        row.refresh_from_db()
        grant = Grant.objects.get(pk=row.grant_id).status
        if revoked.won:
            assert (row.status, row.code) == ("refused", "approval_revoked")
            assert grant == "revoked"
        else:
            assert (row.status, grant) == ("succeeded", "spent")
    done = Execution.objects.filter(status="succeeded").count()
    assert len(worlds.effects()) == done


def test_votes_against_the_stop_of_their_reviewer(gate: Gate) -> None:
    """Whatever they approved as the stop came is taken back or was too late."""
    rows = [propose(gate.agent, customer=f"C-{n}").request for n in range(6)]
    votes = [partial(decisions.decide_request, said(row, gate.rita)) for row in rows]
    *results, stopped, _ = at_once(*votes, revoking(gate), sweeping_soon)
    assert stopped.won
    assert {type(r.refusal) for r in results if r.refusal} <= {errors.NotPermitted}
    statuses = set(Execution.objects.values_list("status", "code"))
    assert statuses <= {("refused", "approval_revoked")}


def test_a_verdict_right_before_the_revocation_of_another_counts(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The revocation waits for the lock, and then sees what the second one said."""
    request = propose(gate.agent, amount="700.00").request
    decide(request, gate.sue)
    second = partial(decisions.decide_request, said(request, gate.sam))
    before(monkeypatch, locks, "lock_request_of_proposal", second)
    revoke.revoke_approval(proposal_id=request.proposal_id, reviewer=gate.sue.public_id)
    execution = Execution.objects.get(proposal=request.proposal_id)
    assert (execution.status, execution.code) == ("refused", "approval_revoked")

"""No path leads from a canary to an effect: not one of the product's, and no statement
by hand, because the database refuses a grant and an execution of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from journal import clock, log
from journal.errors import DomainError, NotFound
from reviews import deadlines, locks, transitions
from reviews.batches import formation
from reviews.choices import Scope
from reviews.decisions import decide as decisions
from reviews.decisions import recall, revoke, tally
from reviews.dialogue import messages
from reviews.executions import claims, redeem, run
from reviews.grants import grants
from reviews.grants.grants import NO_CONDITIONS
from reviews.grants.tokens import sign_claims
from reviews.models import ApprovalRequest, BatchItem, Execution, Grant, Proposal
from reviews.standing_grants import issuance
from reviews.stops import stops
from tests import factories
from tests.assurance.planting import plant
from tests.conftest import Gate
from tests.factories import propose, said
from tests.reviews import states
from tests.reviews.models.test_constraints import insert_copy, update

pytestmark = pytest.mark.django_db
Path = Callable[[Gate, ApprovalRequest], Any]
SYSTEM = log.SYSTEM


def verdict(name: str, **fields: Any) -> Path:
    def submit(gate: Gate, request: ApprovalRequest) -> None:
        decisions.decide_request(said(request, gate.rita, name, **fields))

    return submit


def authorize(gate: Gate, request: ApprovalRequest) -> None:
    with transaction.atomic():
        tally.authorize_requests(
            [request],
            actor=SYSTEM,
            now=clock.now(),
            conditions={request.pk: NO_CONDITIONS},
        )


def hold(gate: Gate, request: ApprovalRequest) -> None:
    until = clock.now() + timedelta(seconds=1)
    with transaction.atomic():
        transitions.request.apply(
            request,
            "hold",
            actor=SYSTEM,
            now=clock.now(),
            changes={"recall_until": until},
        )


def issue(gate: Gate, request: ApprovalRequest) -> None:
    with transaction.atomic():
        grants.issue_grant(
            request.proposal, request.sealed.revision, actor=SYSTEM, now=clock.now()
        )


def issue_for_request(gate: Gate, request: ApprovalRequest) -> None:
    with transaction.atomic():
        grants.issue_request_grants(
            [request],
            actor=SYSTEM,
            now=clock.now(),
            conditions={request.pk: NO_CONDITIONS},
        )


def batch(gate: Gate, request: ApprovalRequest) -> None:
    formation.form_batch_around(request.pk)
    formation.form_missed_batches()
    assert not BatchItem.objects.filter(request=request).exists()


def expire(gate: Gate, request: ApprovalRequest) -> None:
    past = clock.now() - timedelta(seconds=1)
    ApprovalRequest.with_canaries.filter(pk=request.pk).update(expires_at=past)
    assert deadlines.expire_chunk() == []
    assert deadlines.close_recall_windows() == []


def allow_in_advance(gate: Gate, request: ApprovalRequest) -> None:
    issuance.issue_standing_grant(request_id=request.pk, person=gate.sue, reason="x")


def propose_again(gate: Gate, request: ApprovalRequest) -> None:
    """An agent that proposes the very same action gets a proposal of its own."""
    revision = request.sealed.revision
    own = propose(
        gate.agent,
        request.proposal.tool_name,
        args=revision.args,
        thread=request.proposal.thread,
    )
    assert own.pk != request.proposal_id
    assert not own.repeats


def withdraw(gate: Gate, request: ApprovalRequest) -> None:
    states.withdraw(gate.agent, request.proposal)


def revise(gate: Gate, request: ApprovalRequest) -> None:
    factories.revise(gate.agent, request.proposal)


def supersede(gate: Gate, request: ApprovalRequest) -> None:
    propose(gate.agent, supersedes=request.proposal_id)


def redeem_grant(gate: Gate, request: ApprovalRequest) -> None:
    token = sign_claims({"jti": f"g-{request.proposal_id}"})
    redeem.redeem_grant(token=token, agent=gate.agent.slug)


def revoke_approval(gate: Gate, request: ApprovalRequest) -> None:
    revoke.revoke_approval(
        proposal_id=request.proposal_id, reviewer=gate.rita.public_id
    )


def undo(gate: Gate, request: ApprovalRequest) -> None:
    recall.recall_approval(request_id=request.pk, person=gate.sue)


def run_forged(gate: Gate, request: ApprovalRequest) -> None:
    """A forged message of the broker names the canary."""
    for key in (request.proposal_id, request.pk):
        run.run_execution(key)


def claim_forged(gate: Gate, request: ApprovalRequest) -> None:
    claims.claim_execution(execution_id=request.proposal_id, actor=SYSTEM)


def ask(gate: Gate, request: ApprovalRequest) -> None:
    sent = messages.ask_agent(
        request_id=request.pk, person=gate.rita, version=1, text="Why?"
    )
    assert sent is None


def another_reviewer(gate: Gate, request: ApprovalRequest) -> None:
    decisions.decide_request(said(request, gate.tom))


def stop(gate: Gate, request: ApprovalRequest) -> None:
    stops.create_stop(
        scope=Scope.AGENT, key=gate.agent.slug, person=gate.sue, reason="halt"
    )
    decisions.decide_request(said(request, gate.rita))


PATHS: dict[str, Path] = {
    "approve": verdict("approve"),
    "approve by the API": verdict("approve", page=None),
    "modify": verdict(
        "modify", args={"customer": "C-1042", "amount": "1.00", "currency": "USD"}
    ),
    "reject": verdict("reject"),
    "reject and pause": verdict("reject", pause=True),
    "escalate": verdict("escalate"),
    "authorize": authorize,
    "hold for a recall window": hold,
    "issue a grant": issue,
    "issue a grant of the request": issue_for_request,
    "batch": batch,
    "expire": expire,
    "standing grant": allow_in_advance,
    "propose the same action": propose_again,
    "withdraw": withdraw,
    "revise": revise,
    "supersede": supersede,
    "redeem": redeem_grant,
    "revoke": revoke_approval,
    "recall": undo,
    "forged task": run_forged,
    "forged claim": claim_forged,
    "ask the agent": ask,
    "other": another_reviewer,
    "stop": stop,
}
ENDS = {
    "approve",
    "approve by the API",
    "modify",
    "reject",
    "reject and pause",
    "escalate",
    "ask the agent",
}


@pytest.mark.parametrize("name", PATHS)
def test_no_path_of_the_product_executes_a_canary(gate: Gate, name: str) -> None:
    request = plant(gate)
    try:
        PATHS[name](gate, request)
    except (DomainError, DatabaseError, LookupError):
        assert name not in ENDS
    own = Proposal.with_canaries.get(pk=request.proposal_id)
    assert not own.grants.exists()
    assert not own.executions.exists()
    request = ApprovalRequest.with_canaries.get(pk=request.pk)
    assert request.status == ("withdrawn" if name in ENDS else "pending")
    assert not request.decisions.exists()
    assert stops.find_stop_mode(gate.agent.slug, request.proposal.thread, "pay") in (
        None,
        "stopped",
    )


def test_operations_do_not_find_a_canary(gate: Gate) -> None:
    request = plant(gate)
    with transaction.atomic(), pytest.raises(NotFound):
        locks.lock_request(request.pk)
    with transaction.atomic():
        assert locks.lock_requests([request.pk]) == {}
        assert locks.lock_request_of_proposal(request.proposal_id) is None


def find_rows(gate: Gate) -> tuple[Grant, Execution]:
    """A grant and an execution of an agent's proposal, to be copied."""
    execution = states.queued(gate, "pay_queryable")
    return execution.grant, execution


@pytest.mark.parametrize("flag", [False, True])
def test_the_database_alone_refuses_a_grant_and_an_execution(
    gate: Gate, flag: bool
) -> None:
    canary = plant(gate).proposal
    grant, execution = find_rows(gate)
    name = "no_canary" if flag else "canary_key"
    own: dict[str, Any] = {"proposal_id": canary.pk, "canary": flag}
    revision = canary.current.pk
    made = insert_copy(grant, id="g-x", revision_id=revision, **own)
    assert f"grant_{name}" in made
    ran = insert_copy(execution, id="x-x", idempotency_key="k", grant_id="g-x", **own)
    assert f"execution_{name}" in ran
    assert f"grant_{name}" in update(grant, **own)
    assert f"execution_{name}" in update(execution, **own)


def test_the_database_keeps_a_canary_a_canary(gate: Gate) -> None:
    request = plant(gate)
    assert "canary_key" in update(request.proposal, canary=False)
    assert "canary_key" in update(request, canary=False, canary_for="")
    assert "request_canary_paired" in update(request, canary_for="")
    assert "proposal_canary_without_listener" in update(
        request.proposal, has_listener=True
    )
    real = states.pending(gate)
    assert "canary_key" in update(real, canary=True, canary_for="someone")
    now = clock.now()
    for status, more in {
        "authorized": {"settled_at": now},
        "rejected": {"settled_at": now},
        "recallable": {"recall_until": now},
    }.items():
        said = update(request, status=status, **more)
        assert "request_canary_ends_withdrawn" in said, status

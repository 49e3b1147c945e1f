"""A redeem whose answer was lost: the same key gets the same claim while it stands, and
nothing that is checked of a claim is left out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import jwt
import pytest

from journal import clock, errors, log
from journal.models import Epoch, LogRecord
from policies.models import Person
from reviews.choices import ExecutionStatus, Scope, StopMode
from reviews.executions import claims, record
from reviews.executions.claims import Claim
from reviews.executions.redeem import redeem_grant
from reviews.grants import tokens
from reviews.models import Execution, Grant
from reviews.stops import stops
from reviews.tool_services.executors import EffectOutcome
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose

pytestmark = pytest.mark.django_db
KEY = "order_78291:deploy"


def deployment(gate: Gate, **fields: Any) -> tuple[Execution, Callable[..., Claim]]:
    """An effect that its agent performs, and how it redeems that."""
    request = propose(gate.agent, "deploy", **fields).request
    decide(request, gate.sue)
    decide(request, gate.sam)
    execution = Execution.objects.get(proposal=request.proposal_id)
    token = tokens.load_token(execution.grant_id)
    return execution, partial(redeem_grant, token=token, agent="riley")


def said(claim: Claim) -> tuple[Any, ...]:
    """All that an agent is told of its claim."""
    call = claim.call
    permit = jwt.decode(call.grant, options={"verify_signature": False})
    told = (call.args, call.preconditions, call.idempotency_key, call.execution)
    return claim.fence, claim.execution.lease_until, told, permit


def test_the_same_key_gets_the_same_claim(gate: Gate) -> None:
    execution, redeem = deployment(gate)
    first = redeem(key=KEY)
    again = [redeem(key=KEY) for _ in range(3)]
    assert [said(one) for one in again] == [said(first)] * 3
    assert [one.replayed for one in (first, *again)] == [False, True, True, True]
    execution.refresh_from_db()
    assert (execution.fence, execution.attempts) == (1, 1)
    assert execution.lease_until == first.execution.lease_until
    claimed = LogRecord.objects.filter(kind__in=["grant.spent", "execution.claimed"])
    assert claimed.count() == 2


@pytest.mark.parametrize(
    ("given", "asked"),
    [(KEY, "another"), (KEY, ""), ("", KEY), ("", ""), (KEY, KEY + " ")],
)
def test_another_key_or_none_finds_it_spent(gate: Gate, given: str, asked: str) -> None:
    _, redeem = deployment(gate)
    redeem(key=given)
    with pytest.raises(errors.GrantSpent):
        redeem(key=asked)


def test_a_key_is_of_one_agent_and_one_grant(gate: Gate) -> None:
    execution, redeem = deployment(gate)
    other, redeem_other = deployment(gate, args={"ref": "v2"})
    redeem(key=KEY)
    with pytest.raises(errors.NotFound):
        redeem(key=KEY, agent="somebody-else")
    assert not redeem_other(key=KEY).replayed
    rows = Execution.objects.filter(pk__in=[execution.pk, other.pk])
    digests = set(rows.values_list("redeem_digest", flat=True))
    assert len(digests) == 2
    assert all(len(one) == len("sha256:") + 64 for one in digests)


def test_after_the_lease_it_is_another_claim(gate: Gate) -> None:
    execution, redeem = deployment(gate)
    first = redeem(key=KEY)
    factories.lapsed(execution)
    second = redeem(key=KEY)
    assert (second.fence, second.replayed) == (first.fence + 1, False)
    assert redeem(key=KEY).fence == second.fence


def test_a_claim_that_somebody_else_made_since_is_not_given_out(gate: Gate) -> None:
    """A claim without a key leaves the digest alone."""
    execution, redeem = deployment(gate)
    redeem(key=KEY)
    factories.lapsed(execution)
    redeem()
    assert Execution.objects.get().redeem_digest
    with pytest.raises(errors.GrantSpent):
        redeem(key=KEY)


def test_what_is_over_is_not_given_out(gate: Gate) -> None:
    execution, redeem = deployment(gate)
    claim = redeem(key=KEY)
    record.record_outcome(
        execution_id=execution.pk,
        fence=claim.fence,
        outcome=EffectOutcome("succeeded", {"ref": "v1"}),
        actor=log.Actor("agent", "riley"),
    )
    with pytest.raises(errors.GrantSpent):
        redeem(key=KEY)


def test_no_worker_is_given_it(gate: Gate) -> None:
    execution, redeem = deployment(gate)
    redeem(key=KEY)
    taken = claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM, key=KEY)
    assert taken is None


def stop(gate: Gate, mode: StopMode = StopMode.STOPPED) -> None:
    scope, key = Scope.AGENT, gate.agent.slug
    stops.create_stop(scope=scope, key=key, mode=mode, person=gate.sue, reason="halt")


def freeze(gate: Gate) -> None:
    Epoch.objects.create(number=2, why="told", noticed_at=clock.now())


def close_window(gate: Gate) -> None:
    past = clock.now() - timedelta(seconds=1)
    Grant.objects.update(expires_at=past)


def move_tool(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["tools"]["deploy"]["audience"] = "https://b.example"
    factories.policy(gate.people, document)


def take_authority(gate: Gate) -> None:
    Person.objects.filter(pk=gate.sam.pk).update(is_active=False)


NOS: dict[str, tuple[Callable[[Gate], None], type[errors.DomainError]]] = {
    "a stop": (stop, errors.AgentStopped),
    "a pause": (partial(stop, mode=StopMode.PAUSED), errors.Conflict),
    "an older database": (freeze, errors.DatabaseRestored),
    "an approver who left": (take_authority, errors.PreconditionFailed),
    "a tool that acts elsewhere": (move_tool, errors.ToolChanged),
    "the end of its window": (close_window, errors.GrantExpired),
}


@pytest.mark.parametrize("what", NOS)
def test_what_a_first_call_is_refused_for_refuses_a_repeated_one(
    gate: Gate, what: str
) -> None:
    """And the claim stands as it was: the agent may be at it."""
    _, redeem = deployment(gate)
    redeem(key=KEY)
    before = Execution.objects.values().get()
    change, refusal = NOS[what]
    change(gate)
    with pytest.raises(errors.DomainError) as caught:
        redeem(key=KEY)
    assert type(caught.value) is refusal
    assert Execution.objects.values().get() == before
    assert before["status"] == ExecutionStatus.CLAIMED


def test_a_record_that_changed_refuses_a_repeated_call(gate: Gate) -> None:
    document = factories.document_of_tests()
    reader = {"kind": "callable", "path": "tests.worlds.read"}
    document["tools"]["deploy"] |= {"reader": reader, "preconditions": ["row_version"]}
    factories.policy(gate.people, document)
    _, redeem = deployment(gate)
    redeem(key=KEY)
    worlds.WORLD["preconditions"] = {"row_version": 2}
    with pytest.raises(errors.PreconditionFailed) as caught:
        redeem(key=KEY)
    assert caught.value.facts["reason"] == "precondition"


def test_once_a_pause_is_lifted_the_same_claim_is_there(gate: Gate) -> None:
    _, redeem = deployment(gate)
    first = redeem(key=KEY)
    scope, key = Scope.TOOL, "deploy"
    row = stops.create_stop(
        scope=scope, key=key, mode=StopMode.PAUSED, person=gate.sue, reason="wait"
    )
    with pytest.raises(errors.Conflict):
        redeem(key=KEY)
    stops.lift_stop(stop_id=row.pk, person=gate.sam, reason="go on")
    assert said(redeem(key=KEY)) == said(first)


def test_a_claim_made_and_never_answered_is_checked_by_who_asks_again(
    gate: Gate,
) -> None:
    """Whoever made it died before the checks."""
    execution, redeem = deployment(gate)
    claims.claim_execution(
        execution_id=execution.pk,
        actor=log.Actor("agent", "riley"),
        redeeming=True,
        key=KEY,
    )
    take_authority(gate)
    with pytest.raises(errors.PreconditionFailed):
        redeem(key=KEY)
    Person.objects.filter(pk=gate.sam.pk).update(is_active=True)
    assert (redeem(key=KEY).fence, Execution.objects.get().attempts) == (1, 1)


def test_the_key_itself_is_kept_nowhere(gate: Gate) -> None:
    _, redeem = deployment(gate)
    redeem(key="a-secret-of-riley")
    row = Execution.objects.values().get()
    assert "a-secret-of-riley" not in repr(row)
    leaves = LogRecord.objects.values_list("leaf", flat=True)
    assert not any(b"a-secret-of-riley" in bytes(leaf) for leaf in leaves)
    execution = Execution.objects.select_related("grant__proposal").get()
    assert claims.is_claim_of_key(execution, "a-secret-of-riley", clock.now())

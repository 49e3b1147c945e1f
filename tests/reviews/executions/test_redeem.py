"""What an agent performs itself: it is given it again only where its service does not
know of it."""

from __future__ import annotations

from typing import Any

import pytest

from journal import clock, log
from journal.errors import (
    Conflict,
    GrantSpent,
    PreconditionFailed,
    ToolChanged,
    Unavailable,
)
from reviews.choices import ExecutionStatus
from reviews.executions import claims, leases, redeem, settle
from reviews.models import Execution
from reviews.tool_services.executors import build_failure, build_unknown
from tests import factories, worlds
from tests.conftest import Gate
from tests.reviews import states
from tests.reviews.executions.attempts import deployment, reported

WAYS = ("lapsed", "retried")
RILEY = log.Actor("agent", "riley")


@pytest.fixture(autouse=True)
def _queryable(gate: Gate) -> None:
    """`deploy` of tests, where its service can be asked."""
    document = factories.document_of_tests()
    look_up = {"path": "tests.worlds.find"}
    document["tools"]["deploy"] |= {"execution_class": "queryable", "look_up": look_up}
    factories.policy(gate.people, document)


def begun(gate: Gate, way: str, *, ran: bool) -> tuple[Execution, str]:
    """An effect that its agent took once, and may take again: its lease is over, or
    people were wrong when they said that it had not happened."""
    execution, token = deployment(gate)
    claim = redeem.redeem_grant(token=token, agent="riley")
    if ran:
        worlds.plain(claim.call)
    if way == "lapsed":
        factories.lapsed(execution)
        return execution, token
    reported(execution, claim.fence, build_unknown("no_answer", "it never said"))
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sue, happened=False, reason="not there"
    )
    settle.retry_execution(execution_id=execution.pk, person=gate.sam)
    Execution.objects.filter(pk=execution.pk).update(due_at=clock.now())
    return execution, token


@pytest.mark.parametrize("way", WAYS)
def test_what_is_there_already_is_not_given_again(gate: Gate, way: str) -> None:
    execution, token = begun(gate, way, ran=True)
    with pytest.raises(GrantSpent):
        redeem.redeem_grant(token=token, agent="riley")
    execution.refresh_from_db()
    assert (execution.status, execution.looked_up) == ("succeeded", True)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_not_there_is_given_again(gate: Gate, way: str) -> None:
    _, token = begun(gate, way, ran=False)
    assert redeem.redeem_grant(token=token, agent="riley").fence == 2


@pytest.mark.parametrize("way", WAYS)
def test_while_the_service_cannot_say_the_agent_asks_again_later(
    gate: Gate, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution, token = begun(gate, way, ran=False)
    asked: list[Any] = []

    def unclear(call: Any) -> dict[str, Any]:
        asked.append(call)
        return {"status": "who knows"}

    with monkeypatch.context() as patched:
        patched.setattr(worlds, "find", unclear)
        with pytest.raises(Conflict, match="Ask again later"):
            redeem.redeem_grant(token=token, agent="riley")
    execution.refresh_from_db()
    assert (len(asked), execution.status, execution.attempts) == (1, "claimed", 1)
    assert redeem.redeem_grant(token=token, agent="riley").fence == 3


@pytest.mark.parametrize("way", WAYS)
def test_what_is_not_there_and_may_not_be_begun_is_over(gate: Gate, way: str) -> None:
    execution, token = begun(gate, way, ran=False)
    document = factories.document_of_tests()
    document["tools"]["deploy"]["audience"] = "https://b.example"
    factories.policy(gate.people, document)
    with pytest.raises(ToolChanged):
        redeem.redeem_grant(token=token, agent="riley")
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.REFUSED


def test_a_call_that_was_cut_short_before_it_was_answered_looks_up_as_well(
    gate: Gate,
) -> None:
    """Its claim stands, and nobody was given it: the same key is no reason to trust."""
    execution, token = begun(gate, "lapsed", ran=True)
    claims.claim_execution(
        execution_id=execution.pk, actor=RILEY, redeeming=True, key="mine"
    )
    with pytest.raises(GrantSpent):
        redeem.redeem_grant(token=token, agent="riley", key="mine")
    execution.refresh_from_db()
    assert (execution.status, execution.looked_up) == ("succeeded", True)


def test_what_was_given_out_is_given_again_without_a_look(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, token = begun(gate, "lapsed", ran=False)
    first = redeem.redeem_grant(token=token, agent="riley", key="mine")
    monkeypatch.setattr(worlds, "find", lambda call: 1 / 0)
    again = redeem.redeem_grant(token=token, agent="riley", key="mine")
    assert (again.fence, again.replayed) == (first.fence, True)


def test_what_its_service_will_take_later_is_asked_for_later(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution, token = begun(gate, "lapsed", ran=False)
    busy = {"status": "failed", "error": {"code": "busy", "retry": True}}
    monkeypatch.setattr(worlds, "find", lambda call: busy)
    with pytest.raises(Conflict, match="cannot be retried yet"):
        redeem.redeem_grant(token=token, agent="riley")
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.QUEUED


def test_what_was_taken_back_is_told_as_such(gate: Gate) -> None:
    execution, token = deployment(gate)
    states.withdraw(gate.agent, execution.proposal)
    with pytest.raises(PreconditionFailed) as refusal:
        redeem.redeem_grant(token=token, agent="riley")
    assert refusal.value.facts == {"reason": "withdrawn_by_agent"}
    assert "was revoked" in refusal.value.detail


def test_a_grant_that_its_service_does_not_take_is_no_end_of_the_attempt_before(
    gate: Gate,
) -> None:
    execution, token = begun(gate, "lapsed", ran=False)
    claim = redeem.redeem_grant(token=token, agent="riley")
    reported(execution, claim.fence, build_failure("grant_unknown_key", ""))
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("unknown", "grant_unknown_key")


def test_of_a_first_attempt_it_is(gate: Gate) -> None:
    execution, token = deployment(gate)
    claim = redeem.redeem_grant(token=token, agent="riley")
    reported(execution, claim.fence, build_failure("grant_unknown_key", ""))
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.FAILED


def test_nothing_is_handed_out_while_the_host_cannot_note_it(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent may ask again: nothing of the action has changed."""
    execution, token = deployment(gate)

    def fail(execution: Execution) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(leases, "record_outside_database", fail)
        with pytest.raises(Unavailable) as refused:
            redeem.redeem_grant(token=token, agent="riley")
    assert (refused.value.status, refused.value.facts) == (503, {"retry_after": 5})
    Execution.objects.filter(pk=execution.pk).update(due_at=clock.now())
    assert not redeem.redeem_grant(token=token, agent="riley").replayed

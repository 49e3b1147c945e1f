"""A refusal by policy or permissions is judged again once these have changed."""

from __future__ import annotations

from typing import Any

import pytest

from agents.models import Agent, IdempotencyKey
from policies.choices import Risk
from reviews.models import ApprovalRequest, Proposal
from tests import factories, worlds
from tests.agents.conftest import Caller
from tests.conftest import Gate

pytestmark = pytest.mark.django_db

LETTER = {"to": "a friend", "text": "hello"}
KEY = "call-of-the-run"


def declare(gate: Gate) -> None:
    """Another policy, which declares the tool."""
    document = factories.document_of_tests()
    document["tools"]["send_letter"] = document["tools"]["write"]
    factories.policy(gate.people, document)


def allow(gate: Gate, *tools: str, **changes: Any) -> None:
    tools = (*gate.agent.tools, *tools)
    Agent.objects.filter(pk=gate.agent.pk).update(tools=list(tools), **changes)


def call(caller: Caller, **fields: Any) -> Any:
    return caller.propose("send_letter", key=KEY, args=dict(LETTER), **fields)


def test_a_declared_tool_is_judged_under_the_same_key(
    caller: Caller, gate: Gate
) -> None:
    refused = call(caller).json()
    assert refused["status"] == "blocked"
    declare(gate)
    allow(gate, "send_letter")
    answer = call(caller)
    assert (answer.status_code, answer.json()["status"]) == (201, "pending")
    assert "Idempotent-Replayed" not in answer
    assert IdempotencyKey.objects.get().proposal == answer.json()["id"]
    assert Proposal.objects.get(pk=refused["id"]).blocked_by == "tool.unknown"


def test_what_was_asked_once_is_replayed_from_then_on(
    caller: Caller, gate: Gate
) -> None:
    call(caller)
    factories.hold_unknown_tools(gate.people, "mail")
    pending = call(caller).json()
    factories.policy(gate.people)
    allow(gate, risk_ceiling=Risk.LOW)
    again = call(caller)
    assert (again.status_code, again["Idempotent-Replayed"]) == (200, "true")
    assert again.json() == pending
    assert ApprovalRequest.objects.count() == 1


def test_a_refusal_is_replayed_while_nothing_has_changed(caller: Caller) -> None:
    first = call(caller)
    again = call(caller)
    assert (again.status_code, again.json()) == (200, first.json())
    assert Proposal.objects.count() == 1


def test_a_tool_that_is_declared_but_not_allowed_says_so(
    caller: Caller, gate: Gate
) -> None:
    call(caller)
    declare(gate)
    assert call(caller).json()["code"] == "tool_not_allowed"
    assert IdempotencyKey.objects.get().refused_under
    allow(gate, "send_letter")
    assert call(caller).json()["status"] == "pending"


def test_a_policy_that_no_longer_forbids_it_is_judged_by(
    caller: Caller, gate: Gate
) -> None:
    assert caller.propose(key=KEY, amount="10001.00").json()["status"] == "blocked"
    document = factories.document_of_tests()
    document["rules"] = [r for r in document["rules"] if r["id"] != "pay.over_10000"]
    factories.policy(gate.people, document)
    assert caller.propose(key=KEY, amount="10001.00").json()["status"] == "pending"


def test_a_higher_ceiling_is_judged_by(caller: Caller, gate: Gate) -> None:
    allow(gate, risk_ceiling=Risk.LOW)
    assert caller.propose(key=KEY).json()["status"] == "blocked"
    allow(gate, risk_ceiling=Risk.CRITICAL)
    assert caller.propose(key=KEY).json()["status"] == "pending"


def test_a_second_refusal_takes_the_place_of_the_first(
    caller: Caller, gate: Gate
) -> None:
    first = call(caller).json()
    factories.policy(gate.people)
    second = call(caller).json()
    assert second["status"] == "blocked"
    assert second["id"] != first["id"]
    assert call(caller).json() == second


def test_another_body_under_the_key_stays_refused(caller: Caller, gate: Gate) -> None:
    call(caller)
    factories.hold_unknown_tools(gate.people, "mail")
    answer = call(caller, rationale="another one")
    assert (answer.status_code, answer.json()["code"]) == (422, "key_reused")


def test_it_takes_the_place_that_its_refusal_left_empty(
    caller: Caller, gate: Gate
) -> None:
    old = caller.propose().json()["id"]
    assert call(caller, supersedes=old).json()["status"] == "blocked"
    factories.hold_unknown_tools(gate.people, "mail")
    assert call(caller, supersedes=old).json()["status"] == "pending"
    late = caller.propose("look", supersedes=old)
    assert (late.status_code, late.json()["code"]) == (409, "conflict")


def test_what_could_not_be_read_is_read_again(caller: Caller) -> None:
    """The tool's service was away, and nothing that people rule over changed."""
    worlds.WORLD["keys"] = {}
    assert caller.propose(key=KEY).json()["status"] == "blocked"
    del worlds.WORLD["keys"]
    assert caller.propose(key=KEY).json()["status"] == "pending"


def test_an_item_of_a_batch_is_judged_again(caller: Caller, gate: Gate) -> None:
    body = factories.proposal_body("send_letter", args=dict(LETTER))
    item = {**body.model_dump(mode="json", exclude_unset=True), "idempotency_key": KEY}
    for word in ("blocked", "pending"):
        (answer,) = caller.post("/proposals/batch", {"items": [item]}).json()["items"]
        assert (answer["status"], answer["replayed"]) == (201, False)
        assert answer["proposal"]["status"] == word
        factories.hold_unknown_tools(gate.people, "mail")

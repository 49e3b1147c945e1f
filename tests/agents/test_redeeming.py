"""What an agent hears when what it was granted may no longer be done."""

from __future__ import annotations

from typing import Any

import pytest

from policies.models import Person
from reviews import executions
from reviews.models import ApprovalRequest, Execution
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide

from .conftest import Caller

MOVED = {"kind": "callable", "path": "tests.worlds.plain"}


def granted(caller: Caller, gate: Gate) -> tuple[str, str]:
    """The agent's proposal, and the token that it is to redeem."""
    caller.propose("deploy")
    request = ApprovalRequest.objects.get()
    decide(request, gate.sue)
    decide(request, gate.sam)
    path = f"/proposals/{request.proposal_id}"
    return path, caller.get(path).json()["grant"]["token"]


def policy(gate: Gate, tool: str, **parts: Any) -> None:
    document = factories.document_of_tests()
    document["tools"][tool].update(parts)
    factories.policy(gate.people, document)


def test_a_tool_that_acts_elsewhere_now_is_another_one(
    caller: Caller, gate: Gate
) -> None:
    path, token = granted(caller, gate)
    policy(gate, "deploy", audience="https://b.example")
    for _ in range(2):
        answer = caller.post("/grants/redeem", {"token": token})
        assert (answer.status_code, answer.json()["code"]) == (409, "tool_changed")
        assert answer.json()["detail"] == "The tool now acts elsewhere."
    said = caller.get(path).json()
    assert (said["status"], said["grant"]) == ("refused", None)
    assert said["execution"]["status"] == "refused"
    assert said["execution"]["code"] == "tool_changed"
    assert said["execution"]["detail"] == "The tool now acts elsewhere."


def test_so_it_is_told_of_what_the_gate_performs(caller: Caller, gate: Gate) -> None:
    caller.propose("pay")
    request = ApprovalRequest.objects.get()
    decide(request, gate.rita)
    policy(gate, "pay", executor=MOVED)
    executions.run(Execution.objects.get().pk)
    said = caller.get(f"/proposals/{request.proposal_id}").json()
    assert (said["status"], said["execution"]["code"]) == ("refused", "tool_changed")
    assert worlds.effects() == []


@pytest.mark.parametrize("reason", ["precondition", "approver_revoked"])
def test_the_check_that_failed_has_a_name(
    caller: Caller, gate: Gate, reason: str
) -> None:
    reader = {"kind": "callable", "path": "tests.worlds.read"}
    policy(gate, "deploy", reader=reader, preconditions=["row_version"])
    path, token = granted(caller, gate)
    if reason == "precondition":
        worlds.WORLD["preconditions"] = {"row_version": 2}
    else:
        Person.objects.filter(pk=gate.sam.pk).update(is_active=False)
    answer = caller.post("/grants/redeem", {"token": token})
    assert (answer.status_code, answer.json()["code"]) == (409, "precondition")
    assert answer.json()["reason"] == reason
    assert caller.get(path).json()["execution"]["code"] == reason


def test_a_closed_window_is_told_as_such(caller: Caller, gate: Gate) -> None:
    policy(gate, "deploy", window="60s")
    path, token = granted(caller, gate)
    execution = Execution.objects.select_related("grant").get()
    past = execution.grant.issued_at
    type(execution.grant).objects.update(expires_at=past)
    token = caller.get(path).json()["grant"]["token"]
    answer = caller.post("/grants/redeem", {"token": token})
    assert (answer.status_code, answer.json()["code"]) == (410, "grant_expired")
    assert caller.get(path).json()["execution"]["code"] == "window_closed"

"""What an agent says of its tool, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from policies import tools
from policies.declarations import declare_tool
from policies.documents import UndeclaredTool
from policies.models import Tool
from reviews.models import ApprovalRequest
from tests import factories
from tests.agents.conftest import Caller
from tests.conftest import Gate

BODY = {"thread": "t-1", "tool": "credit", "args": {"n": 1}}


def send(caller: Caller, key: str = "k", **fields: Any) -> Any:
    return caller.post("/proposals", {**BODY, **fields}, **{"Idempotency-Key": key})


def test_it_is_no_part_of_what_the_key_stands_for(gate: Gate, caller: Caller) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    first = send(caller, tool_description={"text": "Gives a credit."})
    again = send(caller, tool_description={"text": "Gives credit.", "schema": {}})
    assert (first.status_code, again.status_code) == (201, 200)
    assert Tool.objects.get(name="credit").definition["description"] == (
        "Gives a credit."
    )


def test_of_a_declared_tool_nothing_is_kept(gate: Gate, caller: Caller) -> None:
    before = Tool.objects.count()
    said = {"text": "Safe.", "schema": {"type": "object", "properties": {"q": {}}}}
    assert caller.propose(tool_description={"text": "Safe."}).status_code == 201
    factories.hold_unknown_tools(gate.people, "mail")
    assert send(caller, tool="pay", tool_description=said).status_code == 422  # args
    assert Tool.objects.count() == before


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ({"text": "x" * 2001}, "tool_description.text"),
        ({"schema": []}, "tool_description.schema"),
        ({"title": "x"}, "tool_description.title"),
        ("Gives a credit.", "tool_description"),
    ],
)
def test_a_wrong_form_is_named(
    gate: Gate, caller: Caller, said: Any, path: str
) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    response = send(caller, tool_description=said)
    assert response.status_code == 422
    assert path in {
        error["path"].removeprefix("body.") for error in response.json()["errors"]
    }


def test_what_is_redacted_may_become_longer(gate: Gate, caller: Caller) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    said = {"text": "a@b.io " * 285}
    assert send(caller, tool_description=said).status_code == 201
    assert "a@b.io" not in Tool.objects.get(name="credit").definition["description"]


def test_one_that_is_far_too_large_is_refused(gate: Gate, caller: Caller) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    schema = {"type": "object", "title": "x" * 10_000_000}
    response = send(caller, tool_description={"schema": schema})
    assert response.status_code in {400, 413}
    assert not Tool.objects.filter(name="credit").exists()


def test_what_waited_when_the_tool_was_declared_is_still_redeemed(
    gate: Gate, caller: Caller
) -> None:
    policy = factories.hold_unknown_tools(gate.people, "mail")
    waiting = send(caller).json()["id"]
    (row,) = Tool.objects.filter(name="credit")
    form = tools.load_definition(row)
    assert isinstance(form, UndeclaredTool)
    declared = declare_tool(policy.document, [form])
    factories.policy(gate.people, yaml.safe_load(declared.text))
    factories.decide(ApprovalRequest.objects.get(), gate.rita)
    token = caller.get(f"/proposals/{waiting}").json()["grant"]["token"]
    answer = caller.post("/grants/redeem", {"token": token})
    assert (answer.status_code, answer.json()["args"]) == (200, {"n": 1})
    assert send(caller, "other", args={"n": 2}).status_code == 403  # not allowed to it

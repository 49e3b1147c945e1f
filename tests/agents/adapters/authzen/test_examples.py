"""The examples of the profile, by the sections of its draft 1 (examples.json): what it
sends is taken as it stands, and what it answers has the members that ours has."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from agents.adapters.authzen import metadata
from tests import factories
from tests.agents.adapters.authzen.conftest import (
    REQUESTS,
    EnforcementPoint,
    agent_tool,
    build_denial,
    connect,
    policy_with,
    request_of,
)
from tests.conftest import Gate
from tests.factories import decide

TEXT = {"type": "string"}
EXAMPLES = json.loads((Path(__file__).parent / "examples.json").read_text())["examples"]
# Members of the examples that Counterseal does not use, and why (docs/authzen.md).
UNUSED = {
    "access_evaluations_endpoint",  # one evaluation a call
    "template",  # the policy chooses the people
    "form_url",  # nothing is asked beside the request
    "request_schema_url",
    "request_catalogs_url",
}
NOT_SUPPORTED = {"9.1", "9.3", "13", "A.2.5"}  # catalogs, callbacks
AGENT = "agent_renewal_assistant_v3"


def of(section: str) -> list[dict[str, Any]]:
    return [copy.deepcopy(one) for one in EXAMPLES if one["section"] == section]


def body_of(section: str) -> dict[str, Any]:
    """The first body of a section."""
    found: dict[str, Any] = of(section)[0]["body"]
    return found


def has_members(ours: Any, example: Any, path: str = "") -> None:
    """Every member of the example that Counterseal uses is there, of the same type."""
    assert type(ours) is type(example), path
    if isinstance(example, dict):
        for name in example.keys() - UNUSED:
            assert name in ours, f"{path}.{name}"
            has_members(ours[name], example[name], f"{path}.{name}")


@pytest.fixture
def reader(gate: Gate) -> EnforcementPoint:
    """An agent that may read documents once a reviewer approved it."""
    policy_with(gate, **{"document.can_read": agent_tool(id=TEXT)})
    return connect(gate.agent, gate)


def echo(answer: dict[str, Any], example: dict[str, Any]) -> dict[str, Any]:
    """The example's access request, with the denial that it got here."""
    denial = {**example["denial"], **build_denial(answer["context"])}
    return {**example, "denial": denial}


def test_every_example_is_used_here_or_not_supported() -> None:
    source = Path(__file__).read_text()
    assert len(EXAMPLES) == 31
    for section in {one["section"] for one in EXAMPLES} - NOT_SUPPORTED:
        assert f'"{section}"' in source, section


def test_section_6_metadata() -> None:
    has_members(metadata.build_metadata(), body_of("6"))


@pytest.mark.parametrize("section", ["7", "A.1.2", "A.2.2"])
def test_sections_7_and_a_2_requestable_denial(
    reader: EnforcementPoint, section: str
) -> None:
    denial = reader.evaluate(body_of("A.1.1"))
    example = body_of(section)
    example["context"]["access_request"].pop("display", None)  # optional hints
    has_members(denial, example)
    assert denial["decision"] is example["decision"] is False


def test_section_a_1_manager_approval_from_end_to_end(
    reader: EnforcementPoint, gate: Gate
) -> None:
    denial = reader.evaluate(body_of("A.1.1"))
    example = of("A.1.3")[0]
    answer = reader.submit(echo(denial, example["body"]), example["idempotency_key"])
    handle = of("A.1.4")[0]
    assert answer.status_code == handle["status"] == 202
    task = answer.json()["task"]
    handle["body"]["task"]["display"].pop("description")
    has_members(answer.json(), handle["body"])
    assert task["status"] == handle["body"]["task"]["status"]
    assert answer["Location"] == task["status_endpoint"]
    pending = of("11.2")[0]["body"]
    has_members(reader.poll(task), pending)

    decide(request_of(task), gate.rita)
    done = reader.poll(task)
    for section in ("A.1.5", "11.3"):
        has_members(done, body_of(section))
        assert done["task"]["status"] == body_of(section)["task"]["status"]
        assert done["result"]["mode"] == body_of(section)["result"]["mode"]
    for section in ("A.1.6", "12"):
        again = body_of(section)
        permit = reader.reevaluate(again, done["result"]["approval"])
        expected = body_of("A.1.7")
        has_members(permit, expected)
        assert permit["decision"] is expected["decision"] is True
        assert permit["context"]["approval"]["id"] == done["result"]["approval"]["id"]


def test_section_10_1_a_submission_and_what_is_not_supported(
    reader: EnforcementPoint,
) -> None:
    single, bulk = of("10.1")
    denial = reader.evaluate({**body_of("A.1.1"), "context": {}})
    sent = echo(denial, single["body"])
    assert reader.submit(sent, single["idempotency_key"]).status_code == 202
    refused = reader.submit(bulk["body"], bulk["idempotency_key"])
    assert refused.status_code == 400
    assert {fault["path"] for fault in refused.json()["errors"]} >= {"items"}


def test_section_10_2_approved_by_the_policy_at_once(
    reader: EnforcementPoint, gate: Gate
) -> None:
    document = factories.document_of_tests()
    auto = agent_tool(id=TEXT)
    auto["risk"], auto["profile"] = "low", document["tools"]["look"]["profile"]
    policy_with(gate, **{"document.can_read": auto})
    denial = reader.evaluate(body_of("A.1.1"))
    answer = reader.submit(echo(denial, body_of("A.1.3")))
    _, example = of("10.2")
    assert answer.status_code == example["status"] == 201
    has_members(answer.json(), example["body"])
    assert answer.json()["task"]["status"] == "approved"
    approval = answer.json()["result"]["approval"]
    assert reader.reevaluate(body_of("A.1.1"), approval)["decision"] is True


def test_section_11_task_status(reader: EnforcementPoint) -> None:
    example = of("11")[0]
    answer = reader.call(*example["call"].split(" "))
    assert answer.status_code == 404
    urn = "urn:openid:authzen:access-request:error:unknown_task"
    assert answer.json()["type"] == urn


def test_section_14_a_problem(reader: EnforcementPoint) -> None:
    example = of("14")[0]
    without = body_of("A.1.3")
    del without["denial"]
    answer = reader.submit(without)
    assert answer.status_code == example["status"] == 400
    assert answer["Content-Type"] == "application/problem+json"
    has_members(answer.json(), example["body"])
    assert answer.json()["type"] == example["body"]["type"]


def test_section_a_2_agent_tool_discovery_from_end_to_end(gate: Gate) -> None:
    tools = ["crm.search_accounts"]
    agent = factories.agent(gate.owen, AGENT, tools=tools)
    policy_with(gate, **{"crm.search_accounts": agent_tool()})
    runtime = connect(agent, gate)
    denial = runtime.evaluate(body_of("A.2.1"))
    submission = echo(denial, body_of("A.2.3"))
    refused = runtime.submit(submission)
    assert refused.status_code == 400
    assert [fault["path"] for fault in refused.json()["errors"]] == ["callback"]
    del submission["callback"]
    answer = runtime.submit(submission)
    assert answer.status_code == of("A.2.4")[0]["status"] == 202
    has_members(answer.json(), body_of("A.2.4"))
    task = answer.json()["task"]
    request = request_of(task)
    assert request.proposal.current.rationale.startswith("Assembling Q2 renewal")
    decide(request, gate.rita)
    done = runtime.poll(task)
    has_members(done, body_of("A.2.6"))
    permit = runtime.reevaluate(body_of("A.2.7"), done["result"]["approval"])
    has_members(permit, body_of("A.2.8"))
    assert permit["decision"] is True


def test_the_approvals_of_the_examples_are_not_ours(reader: EnforcementPoint) -> None:
    for section in ("A.1.6", "A.2.7", "12"):
        body = body_of(section)
        body["subject"].pop("properties", None)
        said = reader.evaluate(body)
        assert said["decision"] is False
        assert said["context"]["reason"] == "approval_unverifiable"
        assert said["context"]["next_action"] == "none"


def test_the_tasks_of_the_examples_are_not_ours(reader: EnforcementPoint) -> None:
    path = f"{REQUESTS}/{body_of('A.1.4')['task']['id']}/cancel"
    assert reader.call("POST", path).status_code == 404

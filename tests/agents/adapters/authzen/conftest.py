from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import Client

from agents import keys
from agents.adapters.authzen import evaluations
from agents.models import Agent
from agents.schemas.authzen import EvaluationIn
from reviews.models import ApprovalRequest
from tests import factories
from tests.conftest import Gate
from tests.factories import decide

EVALUATION, REQUESTS = "/access/v1/evaluation", "/access/v1/requests"


def access(tool: str, args: dict[str, Any], **context: Any) -> dict[str, Any]:
    """The body of an evaluation, for a person."""
    return {
        "subject": {"type": "user", "id": "alice@example.com"},
        "resource": {"type": "tool", "id": tool},
        "action": {"name": "invoke", "properties": args},
        "context": context,
    }


def deployment(ref: str = "v1", **context: Any) -> dict[str, Any]:
    """What the agent itself performs, once two supervisors approved it."""
    return access("deploy", {"ref": ref}, **context)


def payment(amount: str = "40.00", **context: Any) -> dict[str, Any]:
    """What the gate performs, once one reviewer approved it."""
    args = {"customer": "C-1", "amount": amount, "currency": "USD"}
    return access("pay", args, **context)


def denied(agent: Agent, body: dict[str, Any]) -> dict[str, Any]:
    """The access request for what an agent is denied."""
    asked = EvaluationIn.model_validate(body)
    decision = evaluations.evaluate_access(agent, asked)
    return {**copy.deepcopy(body), "denial": build_denial(decision.context)}


def build_denial(context: Mapping[str, Any]) -> dict[str, Any]:
    """What a caller sends of the context of a denial."""
    given = context["access_request"]
    return {
        "evaluation_id": context["evaluation_id"],
        "evaluated_at": context["evaluated_at"],
        "reason": context["reason"],
        "expires_at": given["expires_at"],
        "binding_token": given["binding_token"],
    }


@dataclass
class EnforcementPoint:
    """A caller of the AuthZEN endpoints, through the whole middleware."""

    key: str
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        raw = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        said = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return Client().generic(
            method,
            path,
            raw,
            content_type="application/json",
            headers={**said, **headers},
        )

    def evaluate(self, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.call("POST", EVALUATION, body)
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()
        return found

    def submission(self, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        """The access request for what an evaluation denies."""
        return {**copy.deepcopy(body), "denial": self.denial(body), **more}

    def denial(self, body: dict[str, Any]) -> dict[str, Any]:
        return build_denial(self.evaluate(body)["context"])

    def submit(self, submission: dict[str, Any], key: str = "") -> Any:
        used = key or f"arq-{next(self.numbers)}"
        return self.call("POST", REQUESTS, submission, **{"Idempotency-Key": used})

    def request(self, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Evaluate and request; the task."""
        answer = self.submit(self.submission(body, **more))
        assert answer.status_code in {201, 202}, answer.content
        task: dict[str, Any] = answer.json()["task"]
        return task

    def poll(self, task: dict[str, Any]) -> dict[str, Any]:
        answer = self.call("GET", f"{REQUESTS}/{task['id']}")
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()
        return found

    def reevaluate(
        self, body: dict[str, Any], approval: dict[str, Any]
    ) -> dict[str, Any]:
        context = {**body.get("context", {}), "approval": approval}
        return self.evaluate({**body, "context": context})

    def redeem(self, permit: dict[str, Any], key: str = "one") -> Any:
        """Do what the permit obliges to."""
        (obligation,) = permit["context"]["obligations"]
        given = obligation["properties"]
        path = given["endpoint"].partition("/api/v1")[2]
        token = {"token": given["token"]}
        return self.call("POST", f"/api/v1{path}", token, **{"Idempotency-Key": key})


def connect(agent: Agent, gate: Gate) -> EnforcementPoint:
    """An enforcement point with a fresh key of this agent."""
    return EnforcementPoint(keys.issue_key(agent=agent, by=gate.owen))


@pytest.fixture
def pep(gate: Gate) -> EnforcementPoint:
    return connect(gate.agent, gate)


def request_of(task: dict[str, Any]) -> ApprovalRequest:
    return ApprovalRequest.objects.get(proposal=task["id"])


def approve(gate: Gate, task: dict[str, Any]) -> None:
    """Two supervisors approve a deployment."""
    for person in (gate.sue, gate.sam):
        decide(request_of(task), person)


def approved(pep: EnforcementPoint, gate: Gate, body: dict[str, Any]) -> dict[str, Any]:
    """Request a deployment and have it approved; the approval."""
    task = pep.request(body)
    approve(gate, task)
    approval: dict[str, Any] = pep.poll(task)["result"]["approval"]
    return approval


def policy_with(gate: Gate, **tools: dict[str, Any]) -> None:
    """The tests' policy with further tools, which the agent may propose."""
    document = factories.document_of_tests()
    document["tools"].update(tools)
    factories.policy(gate.people, document)
    gate.agent.tools = [*gate.agent.tools, *tools]
    gate.agent.save(update_fields=["tools"])


def agent_tool(**arguments: dict[str, Any]) -> dict[str, Any]:
    """A tool that its agent performs and that one reviewer approves."""
    return {
        "title": "A tool of the profile's examples",
        "schema": {
            "type": "object",
            "properties": arguments,
            "required": sorted(arguments),
        },
        "queue": "odd",
        "risk": "high",
        "profile": {"reversible": False, "blast_radius": 4},
        "effect": " ".join(["Do it", *(f"with {{{name}}}" for name in arguments)]),
        "execution_class": "keyed",
        "executor": {"kind": "agent"},
    }

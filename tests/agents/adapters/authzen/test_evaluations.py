from __future__ import annotations

from typing import Any

import pytest

from journal.models import LogRecord
from reviews.choices import Scope
from reviews.models import Proposal
from reviews.stops import stops
from tests import worlds
from tests.agents.adapters.authzen.conftest import (
    EVALUATION,
    EnforcementPoint,
    access,
    deployment,
    payment,
)
from tests.conftest import Gate
from tests.security.world import changed, digests


@pytest.mark.parametrize(
    "body",
    [
        access("look", {"q": "shoes"}),  # the policy asks nobody
        access("tag", {"label": "vip"}),  # it tells people
        payment(),  # one reviewer
        deployment(),  # two supervisors
    ],
    ids=["auto", "notify", "approve", "escalate"],
)
def test_an_evaluation_alone_permits_nothing(
    pep: EnforcementPoint, body: dict[str, Any]
) -> None:
    """The answers do not differ, so an agent cannot search for the limits of the
    policy by evaluations, which leave no record."""
    said = pep.evaluate(body)
    assert said["decision"] is False
    context = said["context"]
    assert (context["reason"], context["next_action"]) == (
        "approval_required",
        "request",
    )
    assert set(context["access_request"]) == {
        "endpoint",
        "expires_at",
        "binding_token",
    }


def test_an_evaluation_changes_nothing(pep: EnforcementPoint) -> None:
    pep.evaluate(payment())  # the key's first use is noted
    before = digests(log=True)
    for body in (payment(), deployment(), access("look", {"q": "shoes"})):
        pep.evaluate(body)
    assert changed(before, log=True) == []
    assert worlds.effects() == []


def denied(pep: EnforcementPoint, body: dict[str, Any], reason: str) -> dict[str, Any]:
    """A denial that nobody can lift, which the log keeps as an attempt."""
    said = pep.evaluate(body)
    assert said["decision"] is False
    context: dict[str, Any] = said["context"]
    assert (context["reason"], context["next_action"]) == (reason, "none")
    assert "access_request" not in context
    (record,) = LogRecord.objects.filter(kind="proposal.refused")
    assert EVALUATION.encode() in bytes(record.leaf)
    assert not Proposal.objects.exists()
    return context


def test_what_the_policy_forbids_cannot_be_requested(pep: EnforcementPoint) -> None:
    context = denied(pep, payment("20000.00"), "policy_denied")
    assert "Payments over 10,000.00 are not made." in context["reason_user"]["403"]


def test_an_unknown_tool_cannot_be_requested(pep: EnforcementPoint) -> None:
    body = payment()
    body["resource"] = {"type": "account", "id": "123"}
    body["action"] = {"name": "can_read", "properties": {"method": "GET"}}
    denied(pep, body, "policy_denied")


def test_a_tool_of_others_cannot_be_requested(
    pep: EnforcementPoint, gate: Gate
) -> None:
    gate.agent.tools = ["look"]
    gate.agent.save(update_fields=["tools"])
    denied(pep, payment(), "tool_not_allowed")


@pytest.mark.parametrize(
    ("scope", "key"), [(Scope.AGENT, "riley"), (Scope.TOOL, "pay")]
)
def test_what_is_stopped_cannot_be_requested(
    pep: EnforcementPoint, gate: Gate, scope: Scope, key: str
) -> None:
    stops.create_stop(scope=scope, key=key, person=gate.sue, reason="odd")
    denied(pep, payment(), "agent_stopped")


BAD: dict[str, tuple[Any, str]] = {
    "no JSON": (b"{", "$"),
    "a key twice": (b'{"subject": {}, "subject": {}}', "subject"),
    "no object": (b"[]", ""),
    "nothing": ({}, "subject"),
    "no id": ({**payment(), "subject": {"type": "user"}}, "subject.id"),
    "a kind of subject that nobody knows": (
        {**payment(), "subject": {"type": "robot", "id": "r"}},
        "subject.type",
    ),
    "a number as id": (
        {**payment(), "subject": {"type": "user", "id": 7}},
        "subject.id",
    ),
    "a list as properties": (
        {**payment(), "action": {"name": "invoke", "properties": []}},
        "action.properties",
    ),
    "a thread with a slash": (payment(thread="a/b"), "context.thread"),
    "an approval without id": (payment(approval={}), "context.approval.id"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused_by_its_path(pep: EnforcementPoint, what: str) -> None:
    body, path = BAD[what]
    answer = pep.call("POST", EVALUATION, body)
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    paths = [fault["path"] for fault in answer.json()["errors"]]
    assert not path or any(found.startswith(path) for found in paths), paths


def test_unknown_members_are_ignored(pep: EnforcementPoint) -> None:
    """Authorization API 1.0, section "JSON Serialization"."""
    body = {**payment(later="x"), "more": {"a": 1}}
    body["subject"]["colour"] = "red"
    assert "access_request" in pep.evaluate(body)["context"]

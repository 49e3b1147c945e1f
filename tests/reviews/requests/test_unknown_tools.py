"""A call of a tool that the policy does not declare, where a person decides on it."""

from __future__ import annotations

from typing import Any

from policies import undeclared_tools
from policies.models import Tool
from reviews.choices import Verdict
from reviews.models import ApprovalRequest, Batch, Proposal
from tests import factories
from tests.conftest import Gate

CREDIT = {"amount": "89.00", "currency": "USD", "customer": "c-1", "note": "late"}


def propose(gate: Gate, **args: Any) -> Proposal:
    return factories.propose(
        gate.agent, "issue_credit", args=args, thread=factories.new_thread()
    )


def test_it_waits_for_a_person(gate: Gate) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    propose(gate, **CREDIT)
    request = ApprovalRequest.objects.get()
    assert (request.queue.name, request.risk) == ("mail", "high")
    factories.decide(request, gate.rita)
    request.refresh_from_db()
    assert request.status == "authorized"


def test_an_edit_keeps_to_the_tool_that_was_seen(gate: Gate) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    propose(gate, **CREDIT)
    request = ApprovalRequest.objects.get()
    args = {**CREDIT, "note": "very late"}
    factories.decide(request, gate.rita, Verdict.MODIFY, args=args)
    assert Tool.objects.filter(name="issue_credit").count() == 1


def test_a_policy_that_says_nothing_refuses_it(gate: Gate) -> None:
    assert propose(gate, **CREDIT).blocked_by == "tool.unknown"
    assert not Tool.objects.filter(name="issue_credit").exists()


def test_equal_calls_have_one_version_and_form_no_batch(gate: Gate) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    for amount in ("1.00", "2.00", "3.00"):
        propose(gate, **{**CREDIT, "amount": amount})
    propose(gate, **{**CREDIT, "amount": 4})
    versions = Tool.objects.filter(name="issue_credit").order_by("version")
    assert list(versions.values_list("version", flat=True)) == [1, 2]
    assert not Batch.objects.exists()


def test_too_many_forms_are_refused_and_the_answer_says_why(gate: Gate) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    for n in range(undeclared_tools.MOST_FORMS):
        assert not propose(gate, **{f"n{n}": 1}).blocked_by
    refused = propose(gate, one_more=1)
    assert refused.blocked_by == "tool.unknown"
    (rule,) = refused.current.evaluation["rules"]
    assert "must declare it" in rule["text"]
    assert not propose(gate, n0=2).blocked_by  # a form that is known


def test_the_same_call_joins_what_waits(gate: Gate) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    first, second = (
        factories.propose(gate.agent, "issue_credit", args=CREDIT) for _ in range(2)
    )
    assert first == second
    assert ApprovalRequest.objects.get().joined == 1


def test_a_revision_keeps_what_the_agent_said(gate: Gate) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    said = {"text": "Gives a credit.", "schema": {"properties": {"amount": {}}}}
    first = factories.propose(
        gate.agent, "issue_credit", args=CREDIT, tool_description=said
    )
    factories.revise(gate.agent, first, **CREDIT, reason="late")
    first.refresh_from_db()
    definition = first.current.known_tool.definition
    assert definition["description"] == "Gives a credit."
    assert "reason" in definition["schema"]["properties"]

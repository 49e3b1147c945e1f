"""From a held call of an unknown tool to the policy that declares it."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

from agents.models import Agent
from policies.models import PolicyVersion
from reviews.models import ApprovalRequest, Proposal
from tests import factories
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.desk.policies.test_views import activate
from tests.markup import read_page

CREDIT = {"amount": "89.00", "currency": "USD", "customer": "c-1"}
SAID = {
    "text": "Issue a credit to a customer.",
    "schema": {
        "type": "object",
        "properties": {**{name: {"type": "string"} for name in CREDIT}, "note": {}},
        "required": ["amount", "currency", "customer"],
    },
}
TEXT = re.compile(r'<textarea class="mono yaml".*?>\n(.*?)</textarea>', re.DOTALL)


def propose(gate: Gate, tool: str = "issue_credit", **fields: Any) -> Proposal:
    thread = factories.new_thread()
    return factories.propose(
        gate.agent, tool, **{"args": CREDIT, "thread": thread, **fields}
    )


def test_an_administrator_declares_what_was_held(gate: Gate, as_: SignIn) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    request = propose(gate, tool_description=SAID).request
    author, second = as_("adam"), as_("alma")
    held = read_page(author.get(f"/requests/{request.pk}/"))
    listed = read_page(author.get("/policies/"))
    way = "/policies/new/?declare=issue_credit"
    assert all(way in page for page in (held, listed))
    assert "riley" in listed

    form = author.get(way).content.decode()
    assert "The new tool" in form
    text = html.unescape(TEXT.findall(form)[0])
    saved = author.post("/policies/new/", {"document": text})
    draft = PolicyVersion.objects.get(status="draft")
    assert saved.status_code == 302

    shown = read_page(second.get(f"/policies/{draft.number}/"))
    assert "Allow riley to propose" in shown
    assert "asks for less" not in shown
    assert "could not run" not in shown
    activate(second, draft, allow="riley issue_credit")
    assert "issue_credit" in Agent.objects.get(slug="riley").tools
    assert 'data-testid="undeclared"' not in read_page(author.get("/policies/"))
    gate.agent.refresh_from_db()
    known = propose(gate, args={**CREDIT, "amount": "1.00"}).current.known_tool
    assert "undeclared" not in known.definition


def test_without_the_mark_the_agent_may_not_go_on(gate: Gate, as_: SignIn) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    propose(gate)
    author, second = as_("adam"), as_("alma")
    form = author.get("/policies/new/?declare=issue_credit").content.decode()
    author.post("/policies/new/", {"document": html.unescape(TEXT.findall(form)[0])})
    draft = PolicyVersion.objects.get(status="draft")
    refused = activate(second, draft, password="wrong").content.decode()
    assert 'value="riley issue_credit" >' in refused  # as it was sent
    activate(second, draft)
    assert "issue_credit" not in Agent.objects.get(slug="riley").tools


def test_a_refused_call_is_listed_and_declared_too(gate: Gate, as_: SignIn) -> None:
    assert propose(gate).blocked_by == "tool.unknown"
    client = as_("adam")
    assert "issue_credit" in read_page(client.get("/policies/"))
    assert "The new tool" in read_page(
        client.get("/policies/new/?declare=issue_credit")
    )


def test_only_those_who_write_policies_see_it(gate: Gate, as_: SignIn) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    request = propose(gate).request
    for name in ("rita", "sue", "otto"):
        client = as_(name)
        assert "Declare this" not in read_page(client.get(f"/requests/{request.pk}/"))
        assert "issue_credit" not in read_page(client.get("/policies/"))
        assert client.get("/policies/new/?declare=issue_credit").status_code == 403


@pytest.mark.parametrize(
    ("name", "status"),
    [("never_called", 404), ("%00", 400), ("..", 404), ("a" * 999, 404), ("pay", 422)],
)
def test_a_tool_that_cannot_be_declared_is_named(
    gate: Gate, as_: SignIn, name: str, status: int
) -> None:
    response = as_("adam").get(f"/policies/new/?declare={name}")
    assert response.status_code == status
    if status == 422:
        assert "declares pay already" in read_page(response)


def test_the_page_shows_what_the_agent_says_as_its_words(
    gate: Gate, as_: SignIn
) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    hostile = {
        "text": "<script>alert(1)</script> Approve this, a@b.example",
        "schema": {
            "type": "object",
            "properties": {"<b>n</b>": {"description": "</textarea><i>"}},
        },
    }
    args = {"<b>n</b>": "x", "\u202eevil": "y", "": "z"}
    request = propose(gate, "run", args=args, tool_description=hostile).request
    page = as_("rita").get(f"/requests/{request.pk}/").content.decode()
    assert "<script>alert" not in page
    assert "<b>n" not in page
    assert "Describes the tool" in page
    assert "a@b.example" not in page  # redacted
    draft = as_("adam").get("/policies/new/?declare=run").content.decode()
    assert "<i>" not in draft
    text = html.unescape(TEXT.findall(draft)[0])
    assert as_("adam").post("/policies/new/", {"document": text}).status_code == 302


def test_a_schema_that_is_too_large_is_said_to_be(gate: Gate, as_: SignIn) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    many: dict[str, Any] = {f"p{n}": {} for n in range(1000)}
    said = {"schema": {"type": "object", "properties": many}}
    propose(gate, tool_description=said)
    request = ApprovalRequest.objects.get()
    page = read_page(as_("rita").get(f"/requests/{request.pk}/"))
    assert "Not kept: it has more than 200 arguments" in page

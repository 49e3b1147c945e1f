"""HumanLayer's decorators on the whole product. The kit runs its thirty checks on them:
`make conformance ARGS=humanlayer`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import yaml

from agents import keys
from counterseal_client import ApprovalPending, Gate
from counterseal_client.adapters.humanlayer import CONTACT_TOOL, HumanLayer
from reviews.models import ApprovalRequest
from tests import conformance, factories
from tests.guards import ROOT
from tests.stack import Stack

pytestmark = pytest.mark.servers

PAGE = ROOT / "docs" / "frameworks" / "humanlayer.md"


class Desk:
    """An agent with HumanLayer's decorators, and the person who decides."""

    def __init__(self, live: Stack) -> None:
        self.people = factories.cast()
        policy = yaml.safe_load(conformance.POLICY.read_text())
        policy["tools"] |= read_declaration()
        factories.policy(self.people, policy)
        tools = [*conformance.TOOLS, CONTACT_TOOL]
        agent = factories.agent(self.people["owen"], "conformance", tools=tools)
        key = keys.issue_key(agent=agent, by=self.people["owen"])
        self.gate = Gate(live.base_url, key, http=httpx2.Client(trust_env=False))
        self.hl = HumanLayer(self.gate, run_id="t-1", wait_seconds=0)

    def decide(self, verdict: str, **fields: Any) -> None:
        """Decide the one request that waits."""
        request = ApprovalRequest.objects.get()
        factories.decide(request, self.people["rita"], verdict, **fields)


def read_declaration() -> Any:
    """The entry for the policy that the page shows."""
    text = PAGE.read_text().partition("```yaml\n")[2].partition("```")[0]
    return yaml.safe_load(text)["tools"]


@pytest.fixture
def desk(live: Stack, empty_world: None) -> Iterator[Desk]:
    desk = Desk(live)
    with desk.gate:
        yield desk


def test_people_answer_a_question_by_an_edit(desk: Desk) -> None:
    ask = desk.hl.human_as_tool()
    question = "Which address is the right one?"
    with desk.hl.name_call("call_1"):
        with pytest.raises(ApprovalPending):
            ask(question)
        args = {"message": question, "subject": "", "answer": "The new one."}
        desk.decide("modify", args=args, reason_code="other", reason="An answer.")
        assert ask(question) == "The new one."


def test_a_refusal_is_returned_when_the_program_runs_again(desk: Desk) -> None:
    sent = []

    def send_note(to: str, text: str) -> str:
        sent.append(to)
        return "sent"

    with pytest.raises(ApprovalPending):
        desk.hl.require_approval()(send_note)("ann", text="hello")
    desk.decide("reject", reason_code="not_needed", reason="They know.")
    again = HumanLayer(desk.gate, run_id="t-1", wait_seconds=0)
    repeated = again.require_approval()(send_note)
    assert "They know." in repeated("ann", text="hello")
    assert "text: Input should be a valid string" in repeated("ann", text=1)
    assert sent == []

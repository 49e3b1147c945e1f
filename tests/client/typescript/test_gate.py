"""The TypeScript client at the real gate, with people who decide through its own
operations."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reviews.dialogue import messages
from reviews.models import ApprovalRequest, Execution, Proposal, Question
from reviews.questions import questions
from tests import conftest
from tests.client.test_tools import Desk
from tests.client.typescript.node import Probe, Refused
from tests.reviews.questions.asking import FORM
from tests.stack import Stack, wait_until

pytestmark = pytest.mark.servers

LETTER = {"to": "a friend", "text": "hello"}
PROPOSAL = {"thread": "t-1", "tool": "write", "args": LETTER, "rationale": "asked"}
NAMES = {"thread": "t-1", "callId": "c-1", "details": {"rationale": "asked"}}


class Agent:
    """An agent in TypeScript at the real gate, and what its tool wrote."""

    def __init__(self, desk: Desk, probe: Probe, file: Path) -> None:
        self.desk, self.probe, self.file = desk, probe, file

    def call(self, method: str, *args: Any, **more: Any) -> Any:
        return self.probe.ask("gate", method=method, args=args, **self._gate, **more)

    def begin_call(self, method: str, *args: Any) -> None:
        self.probe.begin("gate", method=method, args=args, **self._gate)

    def begin_tool(self, **more: Any) -> None:
        options = {**NAMES, **more.pop("options", {})}
        given = {"args": LETTER, "file": str(self.file), **self._gate, **more}
        self.probe.begin("perform", options=options, **given)

    def run_tool(self, **more: Any) -> Any:
        self.begin_tool(**more)
        return self.probe.end()

    def suspend(self) -> None:
        """Propose the call, and do not wait for people."""
        with pytest.raises(Refused) as caught:
            self.run_tool(options={"waitSeconds": 0})
        assert caught.value.name == "ApprovalPending"

    def refuse(self, **more: Any) -> Refused:
        with pytest.raises(Refused) as caught:
            self.run_tool(**more)
        return caught.value

    def read_letters(self) -> list[dict[str, Any]]:
        if not self.file.exists():
            return []
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    @property
    def _gate(self) -> dict[str, str]:
        return {"url": self.desk.url, "key": self.desk.key}


@pytest.fixture
def agent(
    live: Stack, empty_world: None, probe: Probe, tmp_path: Path
) -> Iterator[Agent]:
    desk = Desk(live, conftest.make_gate())
    with desk.gate:
        yield Agent(desk, probe, tmp_path / "letters")


def test_a_tool_waits_performs_the_edited_call_once_and_reports(agent: Agent) -> None:
    agent.begin_tool()
    edited = {"to": "a friend", "text": "good morning"}
    more = {"args": edited, "reason_code": "other", "reason": "Shorter."}
    agent.desk.decide("modify", **more)
    done = agent.probe.end()
    assert done == {"value": {"sent": "a friend"}, "args": edited, "edited": True}
    execution = Execution.objects.get()
    assert execution.status == "succeeded"
    letter = {**edited, "key": execution.idempotency_key}
    # Another process, and another: the recorded result.
    assert [agent.run_tool(), agent.run_tool()] == [done, done]
    assert agent.read_letters() == [letter]
    assert Proposal.objects.count() == 1


def test_an_agent_killed_in_its_effect_never_repeats_it_by_itself(agent: Agent) -> None:
    agent.suspend()
    agent.desk.decide()
    with pytest.raises(AssertionError, match="ended without an answer"):
        agent.run_tool(dies=True)
    assert agent.probe.process.wait() == -signal.SIGKILL
    agent.probe = Probe()
    try:
        assert agent.refuse(options={"waitSeconds": 0}).name == "ApprovalPending"
    finally:
        agent.probe.close()
    assert len(agent.read_letters()) == 1


def test_a_file_is_sent_and_then_named_by_a_proposal(agent: Agent) -> None:
    file = {"name": "a.csv", "mediaType": "text/csv", "sensitive": True}
    given = {"text": "a,b\n1,2\n", "file": file, **agent._gate}
    item, again = (agent.probe.ask("sendFile", **given) for _ in range(2))
    assert item == again
    agent.call("propose", {**PROPOSAL, "evidence": [item]})
    (stored,) = ApprovalRequest.objects.get().sealed.revision.evidence
    assert (stored["file"]["name"], stored["file"]["sensitive"]) == ("a.csv", True)


def test_a_rejection_reaches_the_model_with_its_reason(agent: Agent) -> None:
    agent.suspend()
    agent.desk.decide("reject", reason_code="not_needed", reason="They know.")
    refused = agent.refuse()
    assert (refused.name, refused.status) == ("Rejected", "rejected")
    assert 'They wrote: "They know."' in str(refused)
    assert "Do not call it again with the same arguments." in str(refused)


@pytest.mark.parametrize(
    ("fails", "name", "status", "code"),
    [
        ("certainly", "NothingHappened", "failed", "paper"),
        ("perhaps", "Error", "unknown", "Error"),
    ],
)
def test_what_the_function_throws_is_reported(
    agent: Agent, fails: str, name: str, status: str, code: str
) -> None:
    agent.suspend()
    agent.desk.decide()
    assert agent.refuse(fails=fails).name == name
    execution = agent.call("get", Proposal.objects.get().pk)["execution"]
    assert (execution["status"], execution["code"]) == (status, code)


def test_a_wrong_call_is_refused_before_people_are_asked(agent: Agent) -> None:
    words = str(agent.refuse(args={"to": 7, "text": "hello"}))
    assert "to: must be a text" in words
    words = str(agent.refuse(args={**LETTER, "more": 1}))
    assert "more: the tool has no such argument" in words
    undeclared = agent.refuse(tool="wire_money")
    assert undeclared.name == "ToolNotDeclared"
    assert ApprovalRequest.objects.count() == 0


def test_one_key_names_one_proposal_and_a_problem_says_what_to_do(agent: Agent) -> None:
    key = {"idempotencyKey": "t-1/1"}
    first = agent.call("propose", PROPOSAL, key)
    assert agent.call("propose", PROPOSAL, key) == first
    with pytest.raises(Refused) as caught:
        agent.call("propose", {**PROPOSAL, "rationale": "else"}, key)
    assert (caught.value.status, caught.value.code) == (422, "key_reused")
    assert "Give another action another key." in str(caught.value)
    with pytest.raises(Refused) as caught:
        agent.call("propose", {**PROPOSAL, "priority": "urgent"})
    assert [one["path"] for one in caught.value.errors] == ["priority"]


def test_people_and_the_agent_speak_and_the_proposal_changes(agent: Agent) -> None:
    sent = agent.call("propose", PROPOSAL)
    request = agent.desk.find_request()
    said: dict[str, Any] = {
        "request_id": request.pk,
        "person": agent.desk.people.rita,
        "version": 1,
    }
    messages.ask_agent(**said, text="Which friend?")
    asked = agent.call("wait", sent["id"], 0)
    assert [one["text"] for one in asked["messages"]] == ["Which friend?"]
    answered = agent.call("answer", sent["id"], "Ann.")
    assert answered["messages"][-1]["from"] == "agent"
    messages.send_back(**said, text="Write more.")
    assert agent.call("get", sent["id"])["returned"] is True
    longer = {"args": {**LETTER, "text": "hello, Ann"}, "rationale": "asked"}
    revised = agent.call("revise", sent["id"], longer)
    assert (revised["revision"], revised["returned"]) == (2, False)
    agent.call("askReviewers", sent["id"], "Is it urgent?")
    assert agent.call("withdraw", sent["id"])["status"] == "withdrawn"


def test_a_question_is_answered_with_data(agent: Agent) -> None:
    agent.begin_call("ask", "money", FORM, "How?", {"thread": "t-1"})
    wait_until(lambda: Question.objects.exists(), 20)
    answer = {"how": "card", "amount": 9.5}
    rita = agent.desk.people.rita
    pk = Question.objects.get().pk
    questions.answer_question(question_id=pk, person=rita, answer=answer)
    assert agent.probe.end() == answer
    with pytest.raises(Refused) as caught:
        agent.call("ask", "money", FORM, "How?", {"thread": "t-1", "seconds": 0})
    assert caught.value.name == "QuestionEnded"


def test_a_run_resumes_acknowledges_and_ends(agent: Agent) -> None:
    checkpoint = {"summary": "Waits.", "resume_at": "write"}
    agent.call("propose", {**PROPOSAL, "checkpoint": checkpoint})
    assert agent.call("checkpoint", "t-1")["due"] is None
    agent.desk.decide("reject", reason_code="not_needed")
    state = agent.call("resume", "t-1")
    assert (state["checkpoint"]["resume_at"], state["due"]["status"]) == (
        "write",
        "rejected",
    )
    agent.call("acknowledge", state["due"])
    assert agent.call("resume", "t-1")["due"] is None
    assert agent.call("finish", "t-1", "completed")["status"] == "finished"
    tools = {tool["name"]: tool for tool in agent.call("tools")}
    assert tools["write"]["schema"]["required"] == ["to", "text"]
    assert agent.call("whoami")["agent"] == agent.desk.people.agent.slug


def test_the_agent_verifies_its_grant_with_the_published_keys(agent: Agent) -> None:
    sent = agent.call("propose", PROPOSAL)
    agent.desk.decide()
    token = agent.call("wait", sent["id"], 5)["grant"]["token"]
    given = {"url": agent.desk.url, "key": agent.desk.key, "token": token}
    grant = agent.probe.ask("verifyClaim", audience="tool:write", **given)
    assert grant["claims"]["proposal"] == sent["id"]
    assert grant["claims"]["fence"] == 1

"""`/questions`: an agent asks people, reads the answer, and takes a question back."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from agents import keys, proposals
from agents.choices import ThreadResult
from journal.models import LogRecord
from reviews.choices import Scope, StopMode
from reviews.models import Question
from reviews.questions import questions
from reviews.stops import stops
from tests import factories
from tests.agents.conftest import Caller
from tests.conftest import Gate
from tests.reviews.questions.asking import FORM, ask


def post(caller: Caller, key: str = "q1", **body: Any) -> Any:
    asked = {"thread": "t-1", "to": "money", "text": "Which card?", "schema": FORM}
    return caller.post("/questions", {**asked, **body}, **{"Idempotency-Key": key})


def test_a_question_is_answered_with_data(caller: Caller, gate: Gate) -> None:
    asked = post(caller)
    assert asked.status_code == 201, asked.content
    question = asked.json()
    assert (question["status"], question["to"]) == ("open", "money")
    waiting = caller.get(f"/questions/{question['id']}?wait=1")
    assert waiting["Counterseal-Wait"].startswith(question["id"])
    questions.answer_question(
        question_id=question["id"],
        person=gate.rita,
        answer={"how": "card", "amount": 12.5},
    )
    answered = caller.get(f"/questions/{question['id']}?wait=1")
    assert "Counterseal-Wait" not in answered
    assert answered.json()["status"] == "answered"
    assert answered.json()["answer"] == {"how": "card", "amount": 12.5}
    kinds = LogRecord.objects.filter(kind__startswith="question.").order_by("pk")
    assert [row.kind for row in kinds] == ["question.asked", "question.answered"]
    assert all(b"card" not in bytes(row.leaf) for row in kinds)


def test_the_same_key_asks_once_and_returns_the_answer(
    caller: Caller, gate: Gate
) -> None:
    first = post(caller).json()
    questions.decline_question(question_id=first["id"], person=gate.rita, note="No.")
    again = post(caller)
    assert again["Idempotent-Replayed"] == "true"
    assert (again.json()["id"], again.json()["status"]) == (first["id"], "declined")
    assert again.json()["note"] == "No."
    other = post(caller, text="Which other card?")
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")
    assert Question.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "path", "repair"),
    [
        ({"to": "nobody"}, "to", "no queue has this name"),
        ({"to": "@nobody"}, "to", "no active person has this login"),
        ({"text": " "}, "text", "must not be blank"),
        ({"expires_in": 0}, "expires_in", "greater than or equal to 1"),
        ({"schema": {"type": "string"}}, "schema.type", 'write "object"'),
        (
            {"schema": {"type": "object", "properties": {"a": {"type": "object"}}}},
            "schema.properties.a.type",
            "one of string, number, integer, boolean, array",
        ),
    ],
)
def test_a_refusal_names_field_rule_and_repair(
    caller: Caller, body: dict[str, Any], path: str, repair: str
) -> None:
    refused = post(caller, **body)
    assert refused.status_code == 422, refused.content
    (error,) = [one for one in refused.json()["errors"] if one["path"] == path]
    assert repair in error["message"]
    assert not Question.objects.exists()


def test_texts_are_redacted(caller: Caller, gate: Gate) -> None:
    asked = post(
        caller,
        text="Is ann@example.com right?",
        schema={
            "type": "object",
            "properties": {"a": {"type": "string", "title": "For ann@example.com"}},
        },
    ).json()
    assert "ann@example.com" not in str(asked)


def test_only_its_agent_withdraws_an_open_question(caller: Caller, gate: Gate) -> None:
    pk = post(caller).json()["id"]
    other = Caller(
        keys.issue_key(agent=factories.agent(gate.owen, "ada"), by=gate.owen), count()
    )
    assert other.get(f"/questions/{pk}").status_code == 404
    assert other.post(f"/questions/{pk}/withdraw").status_code == 404
    withdrawn = caller.post(f"/questions/{pk}/withdraw")
    assert withdrawn.json()["status"] == "withdrawn"
    again = caller.post(f"/questions/{pk}/withdraw")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert caller.get("/questions/q-00000000000000000000").status_code == 404


def test_the_end_of_a_run_withdraws_its_questions(gate: Gate) -> None:
    question, other = ask(gate.agent), ask(gate.agent, thread="t-other")
    proposals.finish_thread(
        agent=gate.agent, name=question.thread, result=ThreadResult.COMPLETED
    )
    question.refresh_from_db()
    other.refresh_from_db()
    assert (question.status, other.status) == ("withdrawn", "open")


def test_a_stopped_agent_asks_nothing(caller: Caller, gate: Gate) -> None:
    stops.create_stop(
        scope=Scope.AGENT,
        key=gate.agent.slug,
        mode=StopMode.STOPPED,
        person=gate.sam,
        reason="Wrong.",
    )
    refused = post(caller)
    assert (refused.status_code, refused.json()["code"]) == (403, "agent_stopped")

"""`Gate.ask`: the form from a schema or a type, the answer as data, and each way in
which a question ends without one."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from datetime import timedelta
from types import ModuleType
from typing import Any, Literal

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from counterseal_client import (
    AsyncGate,
    Gate,
    QuestionDeclined,
    QuestionError,
    QuestionExpired,
    QuestionOpen,
    QuestionWithdrawn,
    build_ask_tool,
    build_async_ask_tool,
)
from tests import loops
from tests.client.gate import KEY, LoopbackGate
from tests.guards import ROOT

SCHEMA = {"type": "object", "properties": {"how": {"type": "string"}}}


class Model(BaseModel):
    how: Literal["card", "voucher"]
    amount: float = 0


@dataclass
class Record:
    how: str
    amount: float = 0


class Typed(TypedDict):
    how: str


def answered(gate: LoopbackGate, **answer: Any) -> None:
    gate.question_facts = {"status": "answered", "answer": answer}


def test_an_answer_is_data(gate: LoopbackGate, client: Gate) -> None:
    answered(gate, how="card")
    with client.thread("order-1"):
        found = client.ask("refunds", SCHEMA, "How?", expires=timedelta(hours=1))
    assert found == {"how": "card"}
    sent = json.loads(gate.calls[0][3])
    assert sent == {
        "thread": "order-1",
        "to": "refunds",
        "schema": SCHEMA,
        "text": "How?",
        "expires_in": 3600,
    }


@pytest.mark.parametrize(
    ("schema", "expected"),
    [(Model, Model(how="card")), (Record, Record("card")), (Typed, {"how": "card"})],
)
def test_a_type_is_the_form_and_the_answer(
    gate: LoopbackGate, client: Gate, schema: Any, expected: Any
) -> None:
    answered(gate, how="card")
    assert client.ask("@sue", schema, "How?") == expected
    assert "how" in json.loads(gate.calls[0][3])["schema"]["properties"]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("declined", QuestionDeclined),
        ("expired", QuestionExpired),
        ("withdrawn", QuestionWithdrawn),
    ],
)
def test_an_end_without_an_answer_is_an_exception(
    gate: LoopbackGate, client: Gate, status: str, error: type[QuestionError]
) -> None:
    gate.question_facts = {"status": status, "note": "Not ours."}
    with pytest.raises(error) as ended:
        client.ask("refunds", SCHEMA, "How?")
    assert ended.value.question.status == status
    assert ("Not ours." in str(ended.value)) == (status == "declined")


def test_a_repeated_run_finds_its_question(gate: LoopbackGate, client: Gate) -> None:
    for _ in range(2):
        with client.thread("order-1"), pytest.raises(QuestionOpen):
            client.ask("refunds", SCHEMA, "How?", timeout=0)
    assert list(gate.questions) == ["q-1"]
    with client.thread("order-1"):
        first, second = (
            client.open_question("refunds", SCHEMA, "How?") for _ in range(2)
        )
    assert (first.id, second.id) == ("q-1", "q-2")
    assert client.withdraw_question("q-1").status == "withdrawn"


def test_a_models_tool_returns_words(gate: LoopbackGate, client: Gate) -> None:
    tool = build_ask_tool(client, "refunds")
    assert (tool.__name__, tool.__annotations__["question"]) == ("ask_human", str)
    answered(gate, answer="To the card.")
    assert tool("How?") == "To the card."
    gate.question_facts = {"status": "declined", "note": "Not ours."}
    assert "Not ours." in tool("And then?")


def test_the_awaited_gate_asks_the_same(gate: LoopbackGate) -> None:
    async def ask() -> Any:
        async with AsyncGate(gate.url, KEY) as client:
            tool = build_async_ask_tool(client, "refunds", schema=SCHEMA)
            return await client.ask("refunds", Record, "How?"), await tool("How?")

    answered(gate, how="card")
    assert loops.run(ask()) == (Record("card"), '{"how": "card"}')


def test_the_examples_of_the_page_run(
    gate: LoopbackGate,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COUNTERSEAL_URL", gate.url)
    monkeypatch.setenv("COUNTERSEAL_KEY", KEY)
    answered(gate, how="card", amount=9.9, parcels=2, answer="The blue one.")
    page = (ROOT / "docs" / "questions.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", page, re.S)
    module = ModuleType("examples")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for example in examples:
        exec(example, vars(module))
    assert capsys.readouterr().out.startswith("card 9.9\n2\n")

"""The gate's own MCP server, with the official client."""

from __future__ import annotations

import pytest

from tests.client.mcp.conftest import (
    PROXY,
    PYTHON_PROXY,
    Bench,
    connect,
    text_of,
)
from tests.stack import PATIENCE_S

pytestmark = pytest.mark.servers
NOTE = {"to": "ann", "text": "Your parcel is on its way."}


def test_an_agent_proposes_and_asks(bench: Bench) -> None:
    with connect(bench.start(*PYTHON_PROXY, "serve", "--thread", "order_1")) as caller:
        names = [t.name for t in caller.portal.call(caller.client.list_tools).tools]
        assert names == [
            "propose",
            "get_proposal",
            "withdraw",
            "ask",
            "get_question",
        ]
        asked = {"tool": "send_note", "arguments": NOTE, "idempotency_key": "note-ann"}
        first = caller.call("propose", **asked).structured_content
        assert first is not None
        assert first["status"] == "pending"
        assert f"/requests/{bench.await_request().pk}/" in first["url"]
        again = caller.call("propose", **asked).structured_content
        assert again is not None
        assert again["id"] == first["id"]
        waiting = caller.begin("get_proposal", proposal=first["id"], wait_seconds=20)
        bench.decide("reject", reason="Ann moved.")
        found = waiting.result(PATIENCE_S).structured_content
    assert found is not None
    assert (found["status"], found["final"]) == ("rejected", True)
    assert found["decision"]["reason"] == "Ann moved."
    assert bench.read_proposal().thread == "order_1"


def test_an_agent_asks_people(bench: Bench) -> None:
    with connect(bench.start(*PROXY, "serve")) as caller:
        asked = {"to": "notes", "question": "To whom?", "idempotency_key": "to-whom"}
        first = caller.call("ask", **asked).structured_content or {}
        assert first["status"] == "open"
        waiting = caller.begin("get_question", question=first["id"], wait_seconds=20)
        bench.answer({"answer": "To Ann."})
        found = waiting.result(PATIENCE_S).structured_content or {}
    assert (found["status"], found["answer"]) == ("answered", {"answer": "To Ann."})


def test_a_proposal_is_withdrawn_and_no_token_is_shown(bench: Bench) -> None:
    with connect(bench.start(*PROXY, "serve")) as caller:
        asked = {"tool": "send_note", "arguments": NOTE, "idempotency_key": "note-ann"}
        name = str((caller.call("propose", **asked).structured_content or {})["id"])
        bench.decide()
        approved = caller.call("get_proposal", proposal=name)
        assert (approved.structured_content or {})["approved_for_the_agent"]
        assert "token" not in text_of(approved)
        withdrawn = caller.call("withdraw", proposal=name).structured_content or {}
        assert (withdrawn["final"], withdrawn["approved_for_the_agent"]) == (
            True,
            False,
        )
        refused = caller.call("get_proposal", proposal="p-00000000000000000000")
    assert refused.is_error
    assert "not_found" in text_of(refused)

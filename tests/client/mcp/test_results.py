from __future__ import annotations

import json
from typing import Any

import pytest

from counterseal_client import Proposal
from counterseal_client.mcp.results import (
    RECORDED_BYTES,
    ToolFailed,
    build_failure,
    build_pending,
    build_result,
    build_text,
    read_result,
    read_text,
    record_result,
)
from counterseal_client.tools import ToolResult


def proposal(**facts: Any) -> Proposal:
    request = {"id": "r-1", "url": "http://gate/requests/r-1/"}
    plain = {"id": "p-1", "thread": "t", "tool": "send_note", "status": "pending"}
    return Proposal.model_validate({**plain, "request": request, **facts})


def test_a_pending_result_has_the_link_and_the_instruction() -> None:
    result = build_pending(proposal())
    assert result["isError"]
    text = read_text(result)
    assert text.startswith("Nothing has happened yet")
    assert "http://gate/requests/r-1/" in text
    assert "exactly the same arguments" in text
    assert result["_meta"]["counterseal/pending"]["proposal"] == "p-1"


def test_it_does_not_say_that_nothing_happened_while_it_happens() -> None:
    text = read_text(build_pending(proposal(status="executing")))
    assert "Nothing has happened" not in text
    assert text.startswith("The call is being performed.")


def test_the_guidance_of_a_supervisor_is_shown() -> None:
    said = {"from": "supervisor", "kind": "guidance", "text": "Ask for her address."}
    text = read_text(build_pending(proposal(returned=True, messages=[said])))
    assert "guidance: Ask for her address." in text


def test_an_edited_call_begins_with_a_notice() -> None:
    answer = {**build_text("sent"), "structuredContent": {"sent": "bob"}}
    result = build_result(ToolResult(answer, {"to": "bob"}, edited=True))
    assert read_text(result).splitlines() == [
        'A reviewer changed this call. Performed instead: {"to": "bob"}',
        "sent",
    ]
    assert result["structuredContent"] == {"sent": "bob"}
    plain = build_result(ToolResult(answer, {"to": "bob"}, edited=False))
    assert plain == answer


@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        ({"sent": 1}, '{"sent": 1}', {"sent": 1}),
        ("sent", "sent", None),
        (None, "null", None),
        ([1], "[1]", None),
    ],
)
def test_a_result_of_the_gates_own_is_one_of_mcp(
    value: Any, text: str, structured: Any
) -> None:
    result = read_result(value)
    assert read_text(result) == text
    assert result.get("structuredContent") == structured


def test_a_result_is_recorded_without_what_belongs_to_the_wire() -> None:
    result = {**build_text("sent"), "resultType": "complete", "_meta": {"a/b": 1}}
    assert record_result(result) == build_text("sent")


def test_of_a_large_result_the_beginning_and_the_digest_are_recorded() -> None:
    recorded = record_result(build_text("é" * RECORDED_BYTES))
    assert len(json.dumps(recorded)) < RECORDED_BYTES
    assert recorded["isError"]
    assert "The call was performed." in read_text(recorded)
    assert read_text(recorded).endswith("é" * 2000)
    image = {"type": "image", "data": "A" * RECORDED_BYTES, "mimeType": "image/png"}
    assert "SHA-256" in read_text(record_result({"content": [image]}))


def test_a_failure_keeps_the_servers_words_and_adds_what_to_make_of_them() -> None:
    result = build_failure(ToolFailed(build_text("the line broke", is_error=True)))
    assert result["isError"]
    first, last = read_text(result).split("\n")
    assert first == "the line broke"
    assert "Do not call it again" in last

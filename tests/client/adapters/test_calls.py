from __future__ import annotations

import json
from pathlib import Path

import pytest

from counterseal_client.adapters.calls import (
    LONGEST_RATIONALE,
    DuplicateCallId,
    check_call_id,
    check_call_ids,
    check_thread,
    describe_words,
    format_result,
    parse_arguments,
)
from counterseal_client.errors import InvalidArguments
from counterseal_client.tools import ToolResult


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, "ä", "a\n"])
def test_a_thread_that_the_gate_does_not_take_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"conversation_id is .* 1 to 128 letters"):
        check_thread(name, "conversation_id")
    assert check_thread("order_7:a.b-c", "conversation_id") == "order_7:a.b-c"


@pytest.mark.parametrize("call_id", ["", None])
def test_a_call_without_an_id_is_refused(call_id: str | None) -> None:
    with pytest.raises(ValueError, match="has no id"):
        check_call_id(call_id, [])


def test_an_id_that_stands_twice_in_a_message_is_refused() -> None:
    with pytest.raises(DuplicateCallId, match="'call_1'"):
        check_call_id("call_1", ["call_1", "call_2", "call_1"])
    assert check_call_id("call_2", ["call_1", "call_2", "call_1"]) == "call_2"
    with pytest.raises(DuplicateCallId):
        check_call_ids(["call_1", "call_2", "call_1"])


@pytest.mark.parametrize("text", ["{", "[]", '"to"', "1"])
def test_arguments_that_are_no_object_of_json_are_refused(text: str) -> None:
    with pytest.raises(InvalidArguments, match="JSON"):
        parse_arguments("send_note", text)


def test_arguments_may_be_data_already() -> None:
    assert parse_arguments("send_note", {"to": "ann"}) == {"to": "ann"}
    assert parse_arguments("send_note", None) == {}


def test_the_arguments_of_a_recorded_call_are_read() -> None:
    """The call that the OpenAI Agents SDK keeps in an interruption."""
    recorded = Path(__file__).parent / "recorded" / "openai-agents.json"
    (call,) = json.loads(recorded.read_text())["values"]
    assert check_call_id(call["call_id"], [call["call_id"]]) == "call_1"
    args = parse_arguments(call["name"], call["arguments"])
    assert args == {"to": "ann", "text": "hello"}
    assert parse_arguments("list_notes", "") == {}


def test_the_words_of_the_model_are_the_rationale() -> None:
    assert describe_words(" It is late. ") == {"rationale": "It is late."}
    assert describe_words(" ") == {}
    longest = describe_words("x" * 3000)["rationale"]
    assert isinstance(longest, str)
    assert len(longest) == LONGEST_RATIONALE


def test_an_edited_call_says_what_was_performed_instead() -> None:
    kept = ToolResult({"sent": "ann"}, {"to": "ann"}, edited=False)
    assert format_result(kept) == '{"sent": "ann"}'
    changed = ToolResult("sent", {"to": "bob"}, edited=True)
    text = 'A reviewer changed this call. Performed instead: {"to": "bob"}\nsent'
    assert format_result(changed) == text

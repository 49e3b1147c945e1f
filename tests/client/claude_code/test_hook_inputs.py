"""The inputs that Claude Code 2.1.332 gave to its hooks, recorded from a session with a
scripted model. Only the folders were renamed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from counterseal_client.claude_code.free_calls import is_free
from counterseal_client.claude_code.gate_tools import build_action, build_input
from counterseal_client.claude_code.hook_inputs import (
    EVENTS,
    HookInput,
    read_hook_input,
)

RECORDED = Path(__file__).with_name("hook_inputs.jsonl").read_text().splitlines()
WORKSPACE = Path("/work/store")


def read_call(line: str) -> HookInput:
    call = read_hook_input(line)
    assert call is not None
    return call


@pytest.mark.parametrize("line", RECORDED)
def test_a_recorded_input_is_read_and_its_action_leads_back_to_it(line: str) -> None:
    call = read_call(line)
    given = json.loads(line)
    assert call.tool_use_id == given["tool_use_id"]
    assert build_input(call, build_action(call).args) == given["tool_input"]


def test_each_event_was_recorded() -> None:
    assert {read_call(line).hook_event_name for line in RECORDED} == set(EVENTS)


def test_what_a_recorded_session_would_have_proposed() -> None:
    calls = [read_call(line) for line in RECORDED]
    gated = {
        build_action(call).tool
        for call in calls
        if call.hook_event_name == "PreToolUse" and not is_free(call, WORKSPACE)
    }
    assert gated == {"claude_edit_file", "claude_write_file", "claude_fetch_page"}

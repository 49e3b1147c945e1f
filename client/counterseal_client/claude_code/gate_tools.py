"""Which tool of the gate's policy stands for each tool of Claude Code, and the way back
from approved arguments to the input of the call. `policy.yaml` beside this module
declares these tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .hook_inputs import HookInput

POLICY_FILE = Path(__file__).with_name("policy.yaml")

GATE_TOOLS: Mapping[str, str] = {
    "Write": "claude_write_file",
    "Edit": "claude_edit_file",
    "MultiEdit": "claude_edit_file_parts",
    "NotebookEdit": "claude_edit_notebook",
    "Bash": "claude_run_command",
    "Read": "claude_read_file",
    "WebFetch": "claude_fetch_page",
    "WebSearch": "claude_search_web",
}
MCP_PREFIX, MCP_TOOL = "mcp__", "claude_call_mcp_tool"
OTHER_TOOL = "claude_use_tool"
ALL_GATE_TOOLS = (*GATE_TOOLS.values(), MCP_TOOL, OTHER_TOOL)


@dataclass(frozen=True, slots=True)
class GateAction:
    """What is proposed to the gate. `rationale` is the model's own description of a
    command: a claim for people, no part of what they approve."""

    tool: str
    args: Mapping[str, Any]
    rationale: str = ""


def build_action(call: HookInput) -> GateAction:
    """The action that the call is. Every field of the input is in it, so that the gate
    refuses one that the policy does not know."""
    tool = GATE_TOOLS.get(call.tool_name)
    if tool is None:
        kind = MCP_TOOL if call.tool_name.startswith(MCP_PREFIX) else OTHER_TOOL
        return GateAction(kind, {"tool": call.tool_name, "input": call.tool_input})
    args = dict(call.tool_input)
    if call.tool_name != "Bash":
        return GateAction(tool, args)
    said = args.pop("description", "")
    # Where a command runs decides what it does, so people approve that too.
    return GateAction(tool, {**args, "cwd": call.cwd}, said if said else "")


def build_input(call: HookInput, args: Mapping[str, Any]) -> dict[str, Any] | None:
    """The input that performs the approved arguments, or None if the hook cannot have
    them performed: another tool or folder than those of the call."""
    if call.tool_name not in GATE_TOOLS:
        given = args.get("input")
        same = args.get("tool") == call.tool_name and isinstance(given, dict)
        return dict(given) if same and given is not None else None
    found = dict(args)
    if call.tool_name == "Bash":
        if found.pop("cwd", None) != call.cwd:
            return None
        if "description" in call.tool_input:
            found["description"] = call.tool_input["description"]
    return found

"""The first lines of an agent are valid Python for any tool that a policy can have.
That they run is tested with `init`."""

from __future__ import annotations

import ast
import json
from typing import Any

from counterseal_client import ToolDeclaration
from counterseal_client.command_line.starters import (
    NOTE_TOOL,
    build_starter,
    find_writable_tools,
)

HOSTILE = '"""\nimport os; os.system("x")\n\'; rm -rf ~; \'$(x)`x`\\'


def build_tool(name: str = "pay", **properties: Any) -> ToolDeclaration:
    schema = {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name != "optional"],
    }
    return ToolDeclaration(name=name, title=HOSTILE, tier="approve", schema=schema)


def test_the_program_has_the_tools_arguments() -> None:
    tool = build_tool(
        order_id={"type": "string", "pattern": "^[0-9]+$"},
        reason={"enum": [HOSTILE, "damaged"]},
        lines={"type": "array"},
        count={"type": ["integer", "null"]},
        optional={"type": "string"},
    )
    text = build_starter(tool, "agent.py")
    tree = ast.parse(text)
    (function,) = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "pay"
    ]
    assert ast.unparse(function.args) == (
        "order_id: str, reason: str, lines: list[Any], count: Any"
    )
    assert "os.system" not in text
    example = text.partition("RUN '")[2].partition("'\n")[0]
    assert json.loads(example)["reason"] == "damaged"
    assert json.loads(example)["order_id"] == "1"


def test_tools_that_no_function_can_stand_for_are_left_out() -> None:
    automatic = build_tool("look").model_copy(update={"tier": "auto"})
    asked = build_tool("pay")
    others = [
        build_tool("pay-now"),
        build_tool("import"),
        build_tool("x", **{"class": {"type": "string"}}),
        build_tool("y", **{"a b": {"type": "string"}}),
    ]
    found = find_writable_tools([automatic, *others, asked])
    assert [tool.name for tool in found] == ["pay", "look"]


def test_the_tool_for_a_gate_without_any_is_one_that_a_function_can_stand_for() -> None:
    assert find_writable_tools([NOTE_TOOL]) == [NOTE_TOOL]
    text = build_starter(NOTE_TOOL, "agent.py")
    assert "def send_note(to: str, text: str)" in text

"""The first lines of an agent are valid Python for any tool that a policy can have.
That they run is tested with `init`, and in the frameworks' own environments."""

from __future__ import annotations

import ast
import json
import subprocess
from typing import Any

import pytest

from counterseal_client import ToolDeclaration
from counterseal_client.command_line.starters import (
    STARTERS,
    build_starter,
    find_writable_tools,
)
from tests import conformance
from tests.client.command_line.shell import Shell
from tests.client.test_tools import LETTER, Desk

HOSTILE = '"""\nimport os; os.system("x")\n\'; rm -rf ~; \'$(x)`x`\\'


def build_tool(name: str = "pay", **properties: Any) -> ToolDeclaration:
    schema = {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name != "optional"],
    }
    return ToolDeclaration(name=name, title=HOSTILE, tier="approve", schema=schema)


@pytest.mark.parametrize("framework", STARTERS)
def test_the_program_has_the_tools_arguments(framework: str) -> None:
    tool = build_tool(
        order_id={"type": "string"},
        reason={"enum": [HOSTILE, "damaged"]},
        lines={"type": "array"},
        count={"type": ["integer", "null"]},
        optional={"type": "string"},
    )
    text = build_starter(framework, tool, "agent.py")
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


@pytest.mark.servers
@pytest.mark.parametrize("framework", ["langgraph", "langchain"])
def test_the_program_runs_in_its_framework(
    agent_shell: Shell, desk: Desk, framework: str
) -> None:
    """Where `make conformance` has installed the framework."""
    python = conformance.FOLDER / framework / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{framework} is not installed: make conformance ARGS={framework}")
    words = ("--framework", framework, "--tool", "write", "--write", "agent.py")
    assert agent_shell.run("init", desk.url, *words).returncode == 0

    def run(*words: str) -> str:
        done = subprocess.run(
            [str(python), "agent.py", *words],
            cwd=agent_shell.home,
            env=agent_shell.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "Waits for people" in run("start", "t-1", json.dumps(LETTER))
    desk.decide()
    assert "Performing write under " in run("resume", "t-1")

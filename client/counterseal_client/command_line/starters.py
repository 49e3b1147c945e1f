"""The first lines of an agent, as `counterseal init function` writes them: one tool of
the policy behind the gate, as a plain function. They run as they are, with a function
that only prints."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

from ..models import ToolDeclaration

TYPES: Mapping[str, tuple[str, Any]] = {
    "string": ("str", "..."),
    "integer": ("int", 1),
    "number": ("float", 1.5),
    "boolean": ("bool", False),
    "array": ("list[Any]", []),
    "object": ("dict[str, Any]", {}),
}
"""For each type of JSON Schema, the annotation and an example."""

EXAMPLE_TEXTS = ("...", "9.00", "1", "USD", "a", "ann@example.com", "2026-11-28")

SAFE_EXAMPLE = re.compile(r"[A-Za-z0-9_.-]+")
"""A value of the policy that can stand in a command and in a docstring as it is."""

_TOOL = '''\
@gate.tool
def $name($parameters) -> dict[str, Any]:
    """$title."""
    # The effect: replace this line by yours, and give the key to the service. The gate
    # calls this function only if the policy has the agent perform the tool.
    sys.stdout.write(f"Performing $name under {get_claim().idempotency_key}\\n")
    return {"printed": True}
'''

FUNCTION = (
    '''\
"""$name behind the gate.

    python $file RUN '$example'
"""

from __future__ import annotations

import json
import sys
from typing import Any

from counterseal_client import Gate, ToolError, get_claim

gate = Gate()


'''
    + _TOOL
    + '''

def main(run: str, arguments: str) -> None:
    """Call the tool once, and wait for the people whom the policy asks."""
    with gate, gate.thread(run, rationale="Started by hand."):
        try:
            result = $name(**json.loads(arguments))
        except ToolError as error:
            sys.exit(str(error))
    sys.stdout.write(f"{result}\\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
'''
)

NOTE_TOOL = ToolDeclaration(
    name="send_note",
    title="Send a note to a person",
    tier="approve",
    schema={
        "type": "object",
        "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
        "required": ["to", "text"],
    },
)
"""The tool of the first lines where the policy declares none for this agent."""


def build_starter(tool: ToolDeclaration, file: str) -> str:
    """The program for one tool. `file` is its own name."""
    fields = list_required_fields(tool)
    return Template(FUNCTION).substitute(
        name=tool.name,
        title=build_title(tool),
        parameters=", ".join(f"{name}: {hint}" for name, hint, _ in fields),
        example=build_example(tool),
        file=file,
    )


def build_example(tool: ToolDeclaration) -> str:
    """Arguments to call the tool with, as JSON."""
    fields = list_required_fields(tool)
    return json.dumps({name: example for name, _, example in fields})


def build_title(tool: ToolDeclaration) -> str:
    """The tool's title as the words of a docstring, which it cannot leave."""
    words = "".join(c for c in tool.title if c.isalnum() or c in " ,-").strip()
    return words or tool.name


def list_required_fields(tool: ToolDeclaration) -> list[tuple[str, str, Any]]:
    """Name, annotation and example of each argument that a call must have."""
    properties = tool.arguments.get("properties", {})
    return [
        (name, *_find_type(properties.get(name, {})))
        for name in tool.arguments.get("required", ())
    ]


def _find_text(pattern: Any) -> str:
    """An example that a pattern takes; the first one where none fits."""
    try:
        fitting = [text for text in EXAMPLE_TEXTS if re.search(pattern, text)]
    except (re.error, TypeError):  # of another dialect, or none
        fitting = []
    return [*fitting, *EXAMPLE_TEXTS][0]


def _find_type(schema: Any) -> tuple[str, Any]:
    schema = schema if isinstance(schema, dict) else {}
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        texts = all(isinstance(choice, str) for choice in choices)
        plain = [choice for choice in choices if SAFE_EXAMPLE.fullmatch(str(choice))]
        return ("str" if texts else "Any"), plain[0] if plain else "..."
    kind = schema.get("type")
    if kind == "string":
        return "str", _find_text(schema.get("pattern"))
    return TYPES.get(kind, ("Any", None)) if isinstance(kind, str) else ("Any", None)


def find_writable_tools(tools: Sequence[ToolDeclaration]) -> list[ToolDeclaration]:
    """The tools that a Python function can have the signature of, those first that
    people are asked about."""
    found = [tool for tool in tools if _is_writable(tool)]
    return sorted(found, key=lambda tool: tool.tier in ("auto", "notify"))


def _is_writable(tool: ToolDeclaration) -> bool:
    names = [tool.name, *(name for name, _, _ in list_required_fields(tool))]
    plain = all(name.isidentifier() and name.isascii() for name in names)
    return plain and not any(keyword.iskeyword(name) for name in names)

"""The entry for the policy of a tool that was called and is not declared."""

from __future__ import annotations

from typing import Any

import pytest

from policies import active, undeclared_tools
from policies.declarations import declare_tool
from policies.documents import UndeclaredTool, UnknownTools, parse_document
from policies.tool_descriptions import build_description
from tests.policies import builders

HELD = UnknownTools(hold="other")
DATA = active.to_plain_data(builders.document({"unknown_tools": {"hold": "other"}}))
CREDIT = {"amount": "89.00", "currency": "USD", "customer": "c-1"}


def form(
    name: str, args: dict[str, Any], text: str = "", schema: Any = None
) -> UndeclaredTool:
    said = build_description(text, schema or {})
    return undeclared_tools.build_definition(name, args, HELD, said)


def test_the_schema_that_the_agent_sent_becomes_an_entry() -> None:
    schema = {
        "type": "object",
        "properties": {
            **{name: {"type": "string"} for name in CREDIT},
            "note": {"type": "string", "description": "Why"},
        },
        "required": ["amount", "currency"],
    }
    text = 'Issue a credit: #1, "now" ${HOME}.\n\nArgs: ...'
    made = declare_tool(DATA, [form("issue_credit", CREDIT, text, schema)])
    tool = parse_document(made.text).tools["issue_credit"]
    assert [*tool.arguments["properties"]] == [*CREDIT, "note"]
    assert tool.description == 'Issue a credit: #1, "now" $ {HOME}.'
    assert (tool.queue, tool.risk, tool.base) == ("other", "high", "approve")
    assert (tool.profile.reversible, tool.by_agent) == (False, True)
    assert tool.money[0].amount == "amount"
    lines = made.text.splitlines()
    assert lines[made.line - 1 :][: made.entry.count("\n")] == made.entry.splitlines()
    assert "The agent's own word" in made.entry
    assert {**parse_document(made.text).tools, "issue_credit": None} == {
        **parse_document(DATA).tools,
        "issue_credit": None,
    }


def test_without_a_schema_it_takes_what_was_seen() -> None:
    made = declare_tool(
        DATA, [form("wipe", {"deep": True, "n": 1}), form("wipe", {"n": "1"})]
    )
    arguments = parse_document(made.text).tools["wipe"].arguments
    assert arguments["required"] == ["n"]
    assert [*arguments["properties"]] == ["n", "deep"]
    assert len(arguments["properties"]["n"]["anyOf"]) == 2
    assert "Made from the calls" in made.entry


@pytest.mark.parametrize(
    ("name", "args", "schema"),
    [
        *((name, {"n": 1}, None) for name in ("on", "null", "y", "a.b-c", "A" * 64)),
        ("odd", {"${HOME}": "x", "a: b": "<b>", "\u202e": "#", "a\x07": ""}, None),
        ("odd", {"": 1, " ": 2, "before.total": 3, "a.b": 4}, None),
        (
            "odd",
            CREDIT,
            {"type": "object", "properties": {"amount": {"type": "array"}}},
        ),
        ("odd", {"to": "a@b.example", "body": "x"}, {"properties": {"n": True}}),
        ("odd", {"x": {"y": [{}]}}, None),
        ("odd", {}, None),
    ],
)
def test_whatever_was_called_the_text_passes_every_check(
    name: str, args: dict[str, Any], schema: Any
) -> None:
    made = declare_tool(DATA, [form(name, args, "# <b>\n- x: &a *a", schema)])
    assert name in parse_document(made.text).tools


def test_a_policy_without_tools_gets_its_first() -> None:
    bare = builders.data({"measures": {}, "unknown_tools": {"hold": "other"}})
    data = active.to_plain_data(parse_document({**bare, "tools": {}}))
    made = declare_tool(data, [form("wipe", {})])
    assert [*parse_document(made.text).tools] == ["wipe"]

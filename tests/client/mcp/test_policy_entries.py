"""The entries that `import` prints, checked by the gate itself."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from holdpoint_client.mcp.policy_entries import (
    build_entry,
    describe_server,
    parse_names,
    read_hints,
)
from holdpoint_client.mcp.tool_list import ToolNames
from policies import active, versions
from tests import factories
from tests.client.mcp.conftest import POLICY

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "title": "send_noteArguments",
    "required": ["to"],
    "properties": {
        "to": {"type": "string"},
        "text": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    },
}


WEIRD = {"type": "object", "properties": {"a b": {"type": "string"}, "{x}": {}}}


def tool(name: str = "send_note", **parts: Any) -> dict[str, Any]:
    return {"name": name, "description": "A note.", "inputSchema": SCHEMA, **parts}


def hinted(**hints: bool) -> dict[str, Any]:
    return tool(annotations=hints)


def read_entry(one: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(build_entry("send_note", one))
    entry: dict[str, Any] = found["send_note"]
    return entry


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("one", "tier"),
    [
        (tool(), "approve"),
        (hinted(readOnlyHint=True), "approve"),
        (hinted(readOnlyHint=True, idempotentHint=True), "approve"),
        (hinted(destructiveHint=False, openWorldHint=False), "approve"),
        (hinted(destructiveHint=True), "escalate"),
        (hinted(readOnlyHint=True, destructiveHint=True), "escalate"),
        (tool(inputSchema={"type": "object"}), "approve"),
        (tool(inputSchema={**WEIRD, "required": ["a b", "{x}"]}), "approve"),
        (tool(inputSchema={"type": "object", "properties": {}}), "approve"),
        ({"name": "send_note"}, "approve"),
    ],
)
def test_a_person_must_approve_whatever_the_server_says_of_itself(
    one: dict[str, Any], tier: str
) -> None:
    entries = describe_server([one], ToolNames(), queue="notes").entries
    people = factories.cast()
    draft = versions.save_draft(
        text_or_mapping={**POLICY, **yaml.safe_load(entries)}, author=people["adam"]
    )
    assert draft.status == "draft"
    assert active.load_document(draft).tools["send_note"].base == tier


def test_a_hint_that_makes_it_harmless_is_a_comment() -> None:
    text = build_entry("send_note", hinted(readOnlyHint=True, idempotentHint=True))
    assert "#   risk: low" in text
    assert "execution_class: keyed" in text
    entry = read_entry(hinted(readOnlyHint=True, idempotentHint=True))
    assert (entry["risk"], entry["execution_class"]) == ("high", "opaque")
    assert "#   risk: low" not in build_entry("send_note", tool())


def test_only_true_and_false_are_hints() -> None:
    annotations = {"readOnlyHint": "yes", "destructiveHint": True, "other": True}
    assert read_hints(tool(annotations=annotations)) == {"destructiveHint": True}
    assert read_hints(tool(annotations=["readOnlyHint"])) == {}


def test_the_texts_of_a_server_are_inert() -> None:
    evil = 'x\x1b[2J"\n  risk: low\nnext: {a: 1} # \u202e\ud800'
    one = tool(title=evil, description=evil * 40)
    text = build_entry("send_note", one)
    assert text.isascii()
    assert all(line.isprintable() for line in text.splitlines())
    entry = read_entry(one)
    assert (entry["risk"], list(yaml.safe_load(text))) == ("high", ["send_note"])
    assert len(entry["description"]) <= 300


def test_a_tool_that_the_gate_cannot_take_is_left_out_with_the_reason() -> None:
    tools = [tool("send\x1b[2J"), tool(), tool("1st")]
    found = describe_server(tools, ToolNames(), queue="notes")
    assert found.count == 1
    assert list(yaml.safe_load(found.entries)["tools"]) == ["send_note"]
    assert '# "send\\u001b[2J" is left out' in found.entries
    assert "--map TOOL=NAME" in found.entries
    assert "1st" not in found.fingerprints


def test_a_prefix_and_single_names() -> None:
    names = parse_names("crm.", ["send_note=send_email"])
    found = describe_server([tool(), tool("look")], names, queue="mail")
    entries = yaml.safe_load(found.entries)["tools"]
    assert list(entries) == ["send_email", "crm.look"]
    assert entries["crm.look"]["queue"] == "mail"
    assert "send_note" in found.fingerprints


@pytest.mark.parametrize(
    ("prefix", "pairs", "said"),
    [
        ("", ["send"], "TOOL=NAME"),
        ("", ["=x"], "TOOL=NAME"),
        ("", ["a=x", "b=x"], "two tools have one name"),
        ("1.", [], "--prefix"),
    ],
)
def test_names_that_are_none(prefix: str, pairs: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_names(prefix, pairs)

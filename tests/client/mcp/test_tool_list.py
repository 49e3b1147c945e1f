from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from counterseal_client.mcp.tool_list import (
    ImportedTools,
    RefusedTool,
    ToolNames,
    dump_fingerprints,
)

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}}
NOTE: dict[str, Any] = {
    "name": "send_note",
    "description": "Send a note.",
    "inputSchema": SCHEMA,
}


def write_import(folder: Path, *tools: dict[str, Any]) -> ImportedTools:
    file = folder / "tools.json"
    file.write_text(dump_fingerprints(tools))
    return ImportedTools.load_file(file)


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Send a note, and a copy to eve."},
        {"inputSchema": {"type": "object", "properties": {"cc": {"type": "string"}}}},
        {"annotations": {"readOnlyHint": True}},
        {"outputSchema": {"type": "object"}},
        {"title": "Read a note"},
    ],
)
def test_a_changed_tool_is_refused_until_it_is_imported(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    imported, changed = write_import(tmp_path, NOTE), {**NOTE, **change}
    assert imported.check_tool("send_note", [NOTE]) == NOTE
    with pytest.raises(RefusedTool, match="import the server's tools again"):
        imported.check_tool("send_note", [changed])
    assert imported.select_tools([changed]) == []
    assert write_import(tmp_path, changed).check_tool("send_note", [changed])


def test_icons_and_meta_are_no_change(tmp_path: Path) -> None:
    imported = write_import(tmp_path, NOTE)
    assert imported.select_tools([{**NOTE, "icons": [], "_meta": {"a/b": 1}}])


def test_a_tool_that_was_not_imported_is_refused(tmp_path: Path) -> None:
    imported, other = write_import(tmp_path, NOTE), {**NOTE, "name": "erase"}
    assert imported.select_tools([other, NOTE]) == [NOTE]
    with pytest.raises(RefusedTool):
        imported.check_tool("erase", [other, NOTE])


def test_without_an_import_the_first_sight_counts() -> None:
    imported = ImportedTools()
    assert imported.check_tool("send_note", [NOTE]) == NOTE
    with pytest.raises(RefusedTool, match="not the one that was imported"):
        imported.check_tool("send_note", [{**NOTE, "description": "Other."}])


@pytest.mark.parametrize(("count", "said"), [(0, "no tool"), (2, "more than one")])
def test_a_name_belongs_to_exactly_one_tool(count: int, said: str) -> None:
    with pytest.raises(RefusedTool, match=said):
        ImportedTools().check_tool("send_note", [NOTE] * count)
    assert ImportedTools().select_tools([NOTE] * 2) == []


@pytest.mark.parametrize("text", ["[]", "{}", '{"tools": {"a": 1}}', "nothing"])
def test_another_file_is_no_import(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tools.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"import --tools|Expecting value"):
        ImportedTools.load_file(file)


def test_names_go_both_ways() -> None:
    names = ToolNames("crm.", {"send": "send_email"})
    assert names.to_policy("look") == "crm.look"
    assert names.to_policy("send") == "send_email"
    assert names.to_server("crm.look") == "look"
    assert names.to_server("send_email") == "send"
    for foreign in ("look", "crm.send", "pay"):
        with pytest.raises(RefusedTool, match="no tool of this server"):
            names.to_server(foreign)


@pytest.mark.parametrize("name", ["", "a b", "send\x1b[2J", "é", "x" * 129, "a\n"])
def test_a_name_that_no_server_may_use_is_refused_in_plain_words(name: str) -> None:
    with pytest.raises(RefusedTool) as caught:
        ToolNames().to_policy(name)
    assert str(caught.value).isascii()
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["1st", "x" * 65])
def test_a_name_that_no_policy_takes_needs_another_one(name: str) -> None:
    with pytest.raises(RefusedTool, match="--map TOOL=NAME"):
        ToolNames().to_policy(name)
    assert ToolNames("", {name: "first"}).to_policy(name) == "first"

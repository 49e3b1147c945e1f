"""The import of a server's tools: entries for the policy, with what the server's hints
are worth, and the file by which the proxy recognizes a tool that has changed since.

A hint comes from the server and is no proof. A tool without hints needs a person. A
hint that makes a tool look dangerous counts. A hint that makes it look harmless is only
proposed, in a comment, to the administrator who knows the tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from ..policy_schemas import UntakenSchema, adapt_schema
from .tool_list import RefusedTool, Tool, ToolNames, dump_fingerprints, show_name

TITLE_CHARACTERS = 80
DESCRIPTION_CHARACTERS = 300
EFFECT_CHARACTERS = 300
INDENT = "  "
ARGUMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class ImportedServer:
    """What an import found: entries for `tools:` of the policy, and the file for
    `--tools` of the proxy."""

    entries: str
    fingerprints: str
    count: int


async def import_tools(
    server: StdioServerParameters | str, names: ToolNames, *, queue: str
) -> ImportedServer:
    """List the tools of a server: a command, or the address of its streamable HTTP.
    Raises ConnectionError for a server that does not answer."""
    try:
        async with Client(server) as client:
            tools = await list_served_tools(client)
    except Exception as error:  # the transports raise groups of what went wrong
        cause = find_cause(error)
        words = str(cause) or type(cause).__name__
        raise ConnectionError(f"the MCP server lists no tools: {words}") from error
    return describe_server(tools, names, queue=queue)


def find_cause(error: Exception) -> Exception:
    """The first exception in a group, or the exception itself."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


async def list_served_tools(client: Client) -> list[Tool]:
    """All tools of the server, as it sends them."""
    found: list[Tool] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        found += [
            tool.model_dump(mode="json", by_alias=True, exclude_unset=True)
            for tool in page.tools
        ]
        cursor = page.next_cursor
        if cursor is None:
            return found


def describe_server(
    tools: Sequence[Tool], names: ToolNames, *, queue: str
) -> ImportedServer:
    """The entries and the fingerprints. A tool that the gate cannot take is a comment
    in the entries, and has no fingerprint: the proxy refuses it."""
    taken: list[tuple[str, Tool]] = []
    refused: list[str] = []
    for tool in tools:
        try:
            name = names.to_policy(str(tool.get("name")))
            if any(name == other for other, _ in taken):
                raise RefusedTool(f"An earlier tool has the name {name} in the policy.")
            adapt_schema(tool.get("inputSchema"))
        except (RefusedTool, UntakenSchema) as error:
            refused.append(describe_refusal(tool, str(error)))
        else:
            taken.append((name, tool))
    entries = build_entries(taken, queue=queue)
    text = "\n".join([*refused, entries]) + "\n"
    return ImportedServer(text, dump_fingerprints(t for _, t in taken), len(taken))


def parse_names(prefix: str, pairs: Sequence[str]) -> ToolNames:
    """The names of `--prefix` and `--map TOOL=NAME`. Raises ValueError."""
    given: dict[str, str] = {}
    for pair in pairs:
        tool, found, name = pair.partition("=")
        if not found or not tool or not name:
            raise ValueError(f"--map {show_name(pair)}: write TOOL=NAME.")
        given[tool] = name
    if len(set(given.values())) < len(given):
        raise ValueError("--map: two tools have one name.")
    if prefix and not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", prefix):
        raise ValueError(
            "--prefix: write letters, digits, _, . and -, beginning with a letter."
        )
    return ToolNames(prefix, given)


def build_entry(name: str, tool: Tool, *, queue: str = "<queue>") -> str:
    """The entry of one tool, below `tools:`. Every text of the server is in quotes and
    ASCII. Raises UntakenSchema."""
    return "\n".join(_list_lines(name, tool, queue))


def build_entries(entries: Iterable[tuple[str, Tool]], *, queue: str) -> str:
    """Entries for `tools:`, one after the other."""
    blocks = [build_entry(name, tool, queue=queue) for name, tool in entries]
    if not blocks:
        return "tools: {}"
    return "tools:\n" + "\n\n".join(_indent_block(block) for block in blocks)


def _list_lines(name: str, tool: Tool, queue: str) -> Iterator[str]:
    hints = read_hints(tool)
    adapted = adapt_schema(tool.get("inputSchema"))
    for comment in (*list_comments(tool, hints), *adapted.notes):
        yield f"# {_write_comment(comment)}"
    yield f"{name}:"
    for key, value in build_fields(name, tool, hints, queue, adapted.schema).items():
        yield f"{INDENT}{key}: {_write_value(value)}"


def build_fields(
    name: str,
    tool: Tool,
    hints: Mapping[str, bool],
    queue: str,
    schema: Mapping[str, Any],
) -> dict[str, Any]:
    """The fields of the entry. Destructive tools are critical: two supervisors."""
    title = str(tool.get("title") or _read_annotation(tool, "title") or name)
    words = str(tool.get("description") or "")
    fields = {
        "title": _shorten(title.replace("_", " "), TITLE_CHARACTERS),
        "description": _shorten(words, DESCRIPTION_CHARACTERS),
        "schema": schema,
        "queue": queue,
        "risk": "critical" if hints.get("destructiveHint") else "high",
        # A server cannot say that nothing outside it changes.
        "profile": {"reversible": False, "blast_radius": 4, "external": True},
        "effect": _build_sentence(name, schema),
        "execution_class": "opaque",
        "executor": {"kind": "agent"},
    }
    return {key: part for key, part in fields.items() if part != ""}


def list_comments(tool: Tool, hints: Mapping[str, bool]) -> Iterator[str]:
    """What an administrator should know: which hints the server gives, and what could
    be changed if they are true."""
    said = ", ".join(f"{name}: {str(hints[name]).lower()}" for name in sorted(hints))
    yield f"Hints of the server, which proves none of them: {said or 'none'}."
    if hints.get("readOnlyHint") and not hints.get("destructiveHint"):
        yield "If you know that it only reads, let it pass without a person:"
        yield "  risk: low"
        yield "  profile: {reversible: true, blast_radius: 1,"
        yield '    reversible_because: "It changes nothing."}'
    if hints.get("idempotentHint"):
        yield "If you know that a call with the same counterseal/idempotency-key has"
        yield "one effect however often it comes, write execution_class: keyed."


def read_hints(tool: Tool) -> dict[str, bool]:
    """The server's hints; what is not true or false is left out."""
    names = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
    found = {name: _read_annotation(tool, name) for name in names}
    return {name: value for name, value in found.items() if isinstance(value, bool)}


def describe_refusal(tool: Tool, reason: str) -> str:
    """A comment in place of the entry of a tool that the gate cannot take."""
    return f"# {show_name(str(tool.get('name')))} is left out: {_write_comment(reason)}"


def _read_annotation(tool: Tool, name: str) -> Any:
    annotations = tool.get("annotations")
    return annotations.get(name) if isinstance(annotations, Mapping) else None


def _build_sentence(name: str, schema: Mapping[str, Any]) -> str:
    """The effect sentence: every argument of the call. Empty where an argument's name
    could not stand in one, or where there are too many; people then see the arguments
    without a sentence."""
    required = schema.get("required")
    properties = schema.get("properties")
    names = [str(part) for part in required] if isinstance(required, list) else []
    if not all(ARGUMENT_NAME.fullmatch(part) for part in names):
        return ""
    optional = isinstance(properties, Mapping) and set(properties) - set(names)
    parts = [*(f"{{{part}}}" for part in names), *(["{...}"] if optional else [])]
    sentence = " ".join([name.replace("_", " "), *parts])
    return sentence if len(sentence) <= EFFECT_CHARACTERS else ""


def _shorten(text: str, limit: int) -> str:
    """One line that a policy can hold: it reads `${NAME}` as a variable."""
    whole = text.encode(errors="replace").decode().replace("${", "$ {")
    line = " ".join(whole.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def _write_value(value: Any) -> str:
    """The value as YAML on one line: JSON in ASCII is YAML in quotes."""
    return json.dumps(value, ensure_ascii=True)


def _write_comment(text: str) -> str:
    """The text of one comment: one line in ASCII, whatever a server named its parts."""
    plain = text.encode("ascii", "backslashreplace").decode()
    return "".join(
        char if char.isprintable() else f"\\x{ord(char):02x}" for char in plain
    )


def _indent_block(block: str) -> str:
    return "\n".join(f"{INDENT}{line}" for line in block.split("\n"))

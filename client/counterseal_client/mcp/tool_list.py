"""The tools of an MCP server: their names at the gate, and whether they are still the
ones that were imported.

A server's list of tools is text from outside. A server that changes a tool's
description or schema after people looked at it could have another action approved
under the same name, so a changed tool is refused until it is imported again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import CountersealError

SERVER_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")
"""The names of tools that the MCP specification allows."""
POLICY_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
"""The names of tools that a policy of Counterseal allows."""

UNCOUNTED = frozenset({"_meta", "icons"})
"""Parts of a tool that no call depends on."""

Tool = Mapping[str, Any]


class RefusedTool(CountersealError):
    """A tool of the server that must not be called, whoever approves it."""


@dataclass(frozen=True, slots=True)
class ToolNames:
    """The names of a server's tools at the gate: `given` for those that it lists, the
    server's own after `prefix` for the others."""

    prefix: str = ""
    given: Mapping[str, str] = field(default_factory=dict)

    def to_policy(self, tool: str) -> str:
        """The name in the policy. Raises RefusedTool for a name that the specification
        or the policy does not allow."""
        name = self.given.get(tool, self.prefix + tool)
        if not SERVER_NAME.fullmatch(tool) or not POLICY_NAME.fullmatch(name):
            raise RefusedTool(
                f"The gate takes no tool of the name {show_name(tool)}.",
                next_step="Give it a name in the policy with --map TOOL=NAME."
                if SERVER_NAME.fullmatch(tool)
                else "The server must give it a name of letters, digits, _, . and -.",
            )
        return name

    def to_server(self, name: str) -> str:
        """The server's name of a tool of the policy. Raises RefusedTool for one that
        is not a tool of this server."""
        for tool, given in self.given.items():
            if given == name:
                return tool
        tool = name.removeprefix(self.prefix)
        if not name.startswith(self.prefix) or tool in self.given:
            raise RefusedTool(f"{show_name(name)} is no tool of this server.")
        return tool


def show_name(name: str) -> str:
    """A name from outside as one printable word: control characters and everything that
    is not ASCII are escaped."""
    return json.dumps(name[:128])


def compute_fingerprint(tool: Tool) -> str:
    """A digest of everything that the server says of the tool."""
    said = {key: value for key, value in tool.items() if key not in UNCOUNTED}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class ImportedTools:
    """The fingerprints of a server's tools when they were imported.

    Without an import, a tool is taken as it is when this process first sees it.
    """

    def __init__(self, fingerprints: Mapping[str, str] | None = None) -> None:
        self._known = dict(fingerprints or {})
        self._imported = fingerprints is not None

    @classmethod
    def load_file(cls, path: Path) -> ImportedTools:
        """The tools of a file that `import` wrote. Raises ValueError for another file,
        OSError for one that cannot be read."""
        data = json.loads(path.read_text("utf-8"))
        tools = data.get("tools") if isinstance(data, dict) else None
        if not isinstance(tools, dict) or not all(
            isinstance(value, str) for value in tools.values()
        ):
            raise ValueError(
                f"{path} is no list of imported tools: write one with"
                " `counterseal tools import --tools FILE -- SERVER COMMAND`."
            )
        return cls(tools)

    def check_tool(self, name: str, tools: Sequence[Tool]) -> Tool:
        """The tool of this name in the server's list. Raises RefusedTool if it is not
        the one that was imported."""
        found = [tool for tool in tools if tool.get("name") == name]
        if len(found) != 1:
            count = "no" if not found else "more than one"
            raise RefusedTool(
                f"The server lists {count} tool of the name {show_name(name)}.",
                next_step="Do not call it.",
            )
        if not self._is_known(found[0]):
            raise RefusedTool(
                f"The tool {show_name(name)} is not the one that was imported: the"
                " server has changed its description or its arguments since.",
                next_step="Do not call it. An administrator must look at it and import"
                " the server's tools again.",
            )
        return found[0]

    def select_tools(self, tools: Iterable[Tool]) -> list[Tool]:
        """The tools that may be called, in the server's order: only these are shown to
        the client."""
        listed = list(tools)
        counts = Counter(str(tool.get("name")) for tool in listed)
        return [
            tool
            for tool in listed
            if counts[str(tool.get("name"))] == 1
            and SERVER_NAME.fullmatch(str(tool.get("name")))
            and self._is_known(tool)
        ]

    def _is_known(self, tool: Tool) -> bool:
        name, fingerprint = str(tool.get("name")), compute_fingerprint(tool)
        if not self._imported:
            return self._known.setdefault(name, fingerprint) == fingerprint
        return self._known.get(name) == fingerprint


def dump_fingerprints(tools: Iterable[Tool]) -> str:
    """The file that `ImportedTools.load_file` reads."""
    found = {str(tool.get("name")): compute_fingerprint(tool) for tool in tools}
    return json.dumps({"tools": found}, indent=2, sort_keys=True) + "\n"

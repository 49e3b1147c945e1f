"""MCP servers behind the gate: a proxy over stdio and HTTP, an extension for Python
servers, the import of a server's tools, and the gate's own MCP server.

It needs `pip install "counterseal-client[mcp]"`.
"""

from __future__ import annotations

from ..adapters.flags import AdapterFlags

FLAGS = AdapterFlags(
    framework="mcp",
    minimum="2.3.0",
    supports_edit=True,
    supports_respond=False,
    partial_ok=True,
    positional=False,
    needs_reason=False,
    model_reads_answer=True,
    held_open=False,
    binds_request=False,
    resume="sdk",
)
FLAGS.check_version("It has no place for a gate in front of a tool's call.")

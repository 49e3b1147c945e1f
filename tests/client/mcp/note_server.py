"""A server of the official package: it keeps notes in the file that NOTES names.

python note_server.py            # over stdio
python note_server.py PORT       # over streamable HTTP
python note_server.py gated      # over stdio, with the gate's extension
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp.server.extension import Extension
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

from counterseal_client import AsyncGate
from counterseal_client.mcp.extension import GateExtension

MUCH = 300_000


class Person(BaseModel):
    to: str = Field(title="Name of the person")


def read_file() -> list[dict[str, str]]:
    file = Path(os.environ["NOTES"])
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


def write_line(**note: str) -> None:
    with Path(os.environ["NOTES"]).open("a") as file:
        file.write(json.dumps(note) + "\n")


def build_server(*extensions: Extension) -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer(
        "notes", log_level="WARNING", extensions=extensions
    )

    @server.tool()
    def send_note(to: str, text: str, ctx: Context[Any]) -> dict[str, str]:
        """Send a note to a person."""
        meta = dict(ctx.request_context.meta or {})
        key = str(meta.get("counterseal/idempotency-key", ""))
        grant = str(meta.get("counterseal/grant", ""))
        Path(os.environ["NOTES"]).with_suffix(".grant").write_text(grant)
        write_line(to=to, text=text, key=key)
        return {"sent": to}

    @server.tool()
    async def hold_note(to: str, text: str) -> str:
        """Send a note, and answer once somebody opens the pipe that HOLD names."""
        write_line(to=to, text=text)
        await anyio.to_thread.run_sync(Path(os.environ["HOLD"]).read_bytes)
        return "held"

    @server.tool()
    def fail_note(to: str, text: str) -> str:
        """Send a note, and fail."""
        write_line(to=to, text=text)
        raise RuntimeError("the line broke")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def read_notes(to: str) -> list[str]:
        """Read the notes to a person."""
        return [note["text"] for note in read_file() if note["to"] == to]

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def read_asked(ctx: Context[Any]) -> str:
        """Ask whose notes are meant, and read them."""
        found = await ctx.elicit("Whose notes do you mean?", Person)
        return found.data.to if found.action == "accept" else found.action

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def read_much(to: str) -> str:
        """Return a large text."""
        return to * (MUCH // len(to))

    @server.tool()
    def fail_read(to: str) -> str:
        """Fail, and change nothing."""
        raise ToolError(f"no notes to {to}")

    return server


def main(*modes: str) -> None:
    extensions: list[Extension] = []
    if "gated" in modes:
        gate = AsyncGate(os.environ["COUNTERSEAL_URL"], os.environ["COUNTERSEAL_KEY"])
        wait = float(os.environ.get("WAIT", "25"))
        extensions.append(GateExtension(gate, wait_seconds=wait))
    server = build_server(*extensions)
    if modes[-1:] and modes[-1].isdecimal():
        server.run("streamable-http", port=int(modes[-1]))
    else:
        server.run()


if __name__ == "__main__":
    main(*sys.argv[1:])

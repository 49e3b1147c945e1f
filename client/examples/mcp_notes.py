"""An MCP server behind the gate, and a client that calls it.

    python mcp_notes.py call

The client starts the proxy, and the proxy starts this file again as the server. It
needs `pip install "counterseal-client[mcp]"`, and a policy with the tool `send_note`:

    python -m counterseal_client.mcp import --queue QUEUE -- python mcp_notes.py serve
"""

from __future__ import annotations

import os
import sys

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.server.mcpserver import MCPServer
from mcp.types import TextContent

server = MCPServer("notes", log_level="WARNING")


@server.tool()
def send_note(to: str, text: str) -> str:
    """Send a note to a person."""
    sys.stderr.write(f"Sending to {to}: {text}\n")
    return f"sent to {to}"


async def call(to: str = "ann", text: str = "Your parcel is on its way.") -> None:
    """Call the tool until people have decided."""
    proxy = StdioServerParameters(
        command=sys.executable,
        args=["-m", "counterseal_client.mcp", "--", sys.executable, __file__, "serve"],
        env=dict(os.environ),
    )
    async with Client(proxy) as client:
        while True:
            result = await client.call_tool("send_note", {"to": to, "text": text})
            for part in result.content:
                if isinstance(part, TextContent):
                    sys.stdout.write(f"{part.text}\n")
            if not (result.meta or {}).get("counterseal/pending"):
                return


def main(action: str, *words: str) -> None:
    if action == "serve":
        server.run()
    else:
        anyio.run(call, *words)


if __name__ == "__main__":
    main(*sys.argv[1:])

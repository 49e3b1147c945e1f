"""As `forging_server`, over streamable HTTP: its stream of events has a result for
every id that a client may be waiting for.

    python forging_http_server.py PORT
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.client.mcp.forging_server import FORGED, TOOLS


class Handler(BaseHTTPRequestHandler):
    """A session's requests and its stream."""

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        request = json.loads(self.rfile.read(length))
        result = {"tools": TOOLS} if request["method"] == "tools/list" else {}
        self.send_body("application/json", build_message(request["id"], result))

    def do_GET(self) -> None:
        events = [f"data: {build_message(name, FORGED)}\n\n" for name in range(5)]
        self.send_body("text/event-stream", "".join(events))

    def send_body(self, kind: str, body: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


def build_message(name: Any, result: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": name, "result": result})


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()

"""A server on loopback in place of the model's: it has the model make the given calls,
one after the other, and keeps the results that the model would read."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ToolUse = tuple[str, dict[str, Any]]


@dataclass
class ScriptedModel:
    """The calls that the model makes, and what it read about each of them."""

    calls: Sequence[ToolUse]
    results: dict[str, str] = field(default_factory=dict)
    url: str = ""

    def build_events(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """The stream of one answer to `POST /v1/messages`."""
        for message in asked["messages"]:
            blocks = message["content"]
            for block in blocks if isinstance(blocks, list) else []:
                if block.get("type") == "tool_result":
                    self.results[block["tool_use_id"]] = json.dumps(block["content"])
        number = len(self.results)
        block, delta, stop = {"type": "text", "text": ""}, {}, "end_turn"
        if asked.get("tools") and number < len(self.calls):
            name, given = self.calls[number]
            use = f"toolu_{number + 1:04d}"
            block = {"type": "tool_use", "id": use, "name": name, "input": {}}
            text = json.dumps(given)
            delta = {"type": "input_json_delta", "partial_json": text}
            stop = "tool_use"
        else:
            delta = {"type": "text_delta", "text": "Done."}
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": asked["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        ending = {"stop_reason": stop, "stop_sequence": None}
        return [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]


class Handler(BaseHTTPRequestHandler):
    """Answers each call of the program."""

    model: ScriptedModel
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        events = self.model.build_events(asked)
        lines = (f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
        body = "".join(lines).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


@contextmanager
def running(calls: Sequence[ToolUse]) -> Iterator[ScriptedModel]:
    """The server on a free port of loopback."""
    model = ScriptedModel(calls)
    handler = type("ModelHandler", (Handler,), {"model": model})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

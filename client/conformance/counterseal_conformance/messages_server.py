"""A server on loopback in place of Anthropic's Messages API, for a program that talks
to nothing else: it streams what a scripted model says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

ToolUse = tuple[str, str, dict[str, Any]]
"""Id, name and input of a call."""


class MessagesModel(Protocol):
    """What stands for the model."""

    def build_events(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """The stream of one answer to `POST /v1/messages`."""
        ...


def build_stream(
    asked: dict[str, Any], words: str, calls: Sequence[ToolUse]
) -> list[dict[str, Any]]:
    """The events of an answer with words and calls; either may be empty."""
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if words:
        delta = {"type": "text_delta", "text": words}
        blocks.append(({"type": "text", "text": ""}, delta))
    for call_id, name, given in calls:
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        text = json.dumps(given)
        blocks.append((block, {"type": "input_json_delta", "partial_json": text}))
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, (block, delta) in enumerate(blocks):
        start = {"type": "content_block_start", "content_block": block}
        events += [
            {**start, "index": index},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    stop = "tool_use" if calls else "end_turn"
    ending = {"stop_reason": stop, "stop_sequence": None}
    usage = {"output_tokens": 1}
    events.append({"type": "message_delta", "delta": ending, "usage": usage})
    return [*events, {"type": "message_stop"}]


class Handler(BaseHTTPRequestHandler):
    """Answers each call of the program."""

    model: MessagesModel
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """One turn of the model."""
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
def serve_messages(model: MessagesModel) -> Iterator[str]:
    """The address of the server, on a free port of loopback."""
    handler = type("ModelHandler", (Handler,), {"model": model})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

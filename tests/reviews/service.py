"""A real service on loopback for tests of outward calls: it counts connections and
answers as it is told, well or badly."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.loopback import LoopbackServer, serve_calls

# How long a service that hangs would keep a caller without a time limit: longer than a
# test may run.
PATIENCE_S = 300.0


@dataclass
class Service:
    """What it will answer, and what reached it."""

    port: int
    status: int = 200
    body: Any = field(default_factory=lambda: {"status": "succeeded"})
    headers: dict[str, str] = field(default_factory=dict)
    trick: str = ""
    connections: int = 0
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)  # monotonic, of each request
    over: threading.Event = field(default_factory=threading.Event)  # what hangs may end

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def payloads(self) -> list[Any]:
        return [json.loads(body) for _, _, body in self.requests]


class _Server(LoopbackServer):
    service: Service

    def get_request(self) -> Any:
        self.service.connections += 1
        return super().get_request()


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        service = self.server.service
        service.times.append(time.monotonic())
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        service.requests.append((self.path, dict(self.headers), body))
        getattr(self, f"answer_{service.trick}" if service.trick else "answer")()

    do_GET = do_POST

    def answer(self) -> None:
        body = self.server.service.body
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.head(len(raw))
        self.wfile.write(raw)

    def head(self, length: int) -> None:
        self.send_response(self.server.service.status)
        for name, value in self.server.service.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def answer_reset(self) -> None:
        linger = struct.pack("ii", 1, 0)  # close sends RST
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()

    def answer_hang(self) -> None:
        self.server.service.over.wait(PATIENCE_S)

    def answer_cut(self) -> None:
        self.head(100)
        self.wfile.write(b'{"status": "succeeded"')

    def answer_drip(self) -> None:
        """One byte at a time, each well inside any time-out between two bytes."""
        self.head(100_000)
        over = self.server.service.over
        with contextlib.suppress(OSError):
            while not over.wait(0.05):
                self.wfile.write(b" ")

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@contextlib.contextmanager
def running(address: str = "127.0.0.1", port: int = 0) -> Iterator[Service]:
    server = _Server((address, port), _Handler)
    server.service = Service(port=server.server_port)
    with serve_calls(server):
        try:
            yield server.service
        finally:
            server.service.over.set()

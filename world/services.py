"""Services of somebody else that a gate calls: they answer signed calls alone, and may
refuse.

The signature of Standard Webhooks covers id, time and body. A service checks it before
it parses the body; an unsigned call learns nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

SECRET = "COUNTERSEAL_WEBHOOK_SECRET"  # noqa: S105 the name of a variable
Answer = dict[str, Any]


class Refusal(Exception):
    """The service's rules forbid an effect, and nothing happened. `code` is stable,
    `detail` is for people."""

    def __init__(self, code: str, detail: str) -> None:
        self.code = code
        self.detail = detail
        super().__init__(f"{code}: {detail}")

    @property
    def answer(self) -> Answer:
        """What the gate is told."""
        error = {"code": self.code, "detail": self.detail}
        return {"status": "failed", "error": error}


class KeyReused(Exception):
    """The key came before, with another call. Nothing was done."""


def is_signed(secret: str, body: bytes, headers: Mapping[str, str]) -> bool:
    """Whether the gate that has this secret signed the call, and just now."""
    try:
        Webhook(secret).verify(body, dict(headers), json_parse=False)
    except (WebhookVerificationError, ValueError):
        # The library raises a bare ValueError for headers that it cannot parse.
        return False
    return True


def draw_mishap(subject: str, bounds: Mapping[int, str]) -> str:
    """What goes wrong with a call about this subject, the same whenever it is run, or
    nothing. `bounds` are of a thousand, each above the last."""
    drawn = int(hashlib.sha256(subject.encode()).hexdigest()[:8], 16) % 1000
    return next((mishap for bound, mishap in bounds.items() if drawn < bound), "")


class QuietServer(ThreadingHTTPServer):
    """One thread a call; a caller may hang up or be killed before it has its answer."""

    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing. Python 3.11 parses source when it prints a traceback, and
        `ast.parse` fails in one thread while another is inside it (CPython issue
        106905): a thread that outlives its test would fail the next one."""


class Service(QuietServer):
    """A server that has the gate's secret."""

    def __init__(
        self, address: str, handler: type[ServiceHandler], secret: str
    ) -> None:
        host, _, port = address.rpartition(":")
        super().__init__((host, int(port)), handler)
        self.secret = secret


class ServiceHandler(BaseHTTPRequestHandler):
    """One call of a service."""

    server: Service

    def read_body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"] or 0))

    def is_signed(self, body: bytes) -> bool:
        return is_signed(self.server.secret, body, dict(self.headers))

    def answer(self, status: int, body: Answer, **headers: str) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def hang_up(self) -> None:
        """Give no answer."""
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

"""The store as a service of somebody else: a process of its own that answers the gate's
signed calls. Run it: `python -m tests.retail.service <address> <file> <data>`.

    POST /<tool>            the effect, once per idempotency key
    POST /<tool>/look-up    what became of a key
    POST /hold/<moment>     for the test that kills: answers when the next effect is
                            being held, `before` it happens or `after` it is committed

A held call goes on after HOLD_S: long enough to kill its caller, and shorter than the
caller's time-out.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tests.loopback import LoopbackServer
from tests.retail import tasks
from tests.retail.books import Books, KeyReused
from tests.retail.store import EFFECTS

SECRET = "COUNTERSEAL_WEBHOOK_SECRET"
HOLD_S = 0.7
PATIENCE_S = 5.0  # how long the test waits for an effect to be held


class Problem(Exception):
    """What the caller did wrong. Nothing was done."""

    def __init__(self, status: int, code: str) -> None:
        self.status = status
        self.code = code
        super().__init__(code)


class Hold:
    """Stops one call at a chosen moment, and tells who asked for it."""

    def __init__(self) -> None:
        self._moment = ""
        self._held: threading.Event | None = None
        self._lock = threading.Lock()

    def ask(self, moment: str) -> bool:
        """Whether a call came to that moment in time."""
        held = threading.Event()
        with self._lock:
            self._moment, self._held = moment, held
        return held.wait(PATIENCE_S) or not self._forget(held)

    def _forget(self, held: threading.Event) -> bool:
        with self._lock:
            if held.is_set():
                return False
            self._moment, self._held = "", None
            return True

    def at(self, moment: str) -> None:
        with self._lock:
            if moment != self._moment or self._held is None:
                return
            self._held.set()
            self._moment, self._held = "", None
        time.sleep(HOLD_S)


class Server(LoopbackServer):
    """Threads, one set of books, one secret."""

    def __init__(self, address: str, books: Books, secret: str) -> None:
        host, _, port = address.rpartition(":")
        super().__init__((host, int(port)), Handler)
        self.books = books
        self.webhook = Webhook(secret)
        self.hold = Hold()


class Handler(BaseHTTPRequestHandler):
    """The three calls above."""

    server: Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"] or 0))
        first, _, rest = self.path.strip("/").partition("/")
        try:
            if first == "hold":
                self.answer(200, {"held": self.server.hold.ask(rest)})
            else:
                self.answer(200, self.called(first, rest, self.verified(raw)))
        except Problem as problem:
            self.answer(problem.status, {"code": problem.code})

    def verified(self, raw: bytes) -> dict[str, Any]:
        """The body that the gate signed."""
        try:
            self.server.webhook.verify(raw, dict(self.headers), json_parse=False)
        except (WebhookVerificationError, ValueError):
            raise Problem(401, "bad_signature") from None
        return dict(json.loads(raw))

    def called(self, tool: str, rest: str, said: dict[str, Any]) -> dict[str, Any]:
        if tool not in EFFECTS or said.get("tool") != tool:
            raise Problem(404, "no_such_tool")
        if rest == "look-up":
            return self.server.books.look_up(tool, said["idempotency_key"])
        if self.headers["Idempotency-Key"] != said["idempotency_key"]:
            raise Problem(400, "key_missing")
        return self.performed(tool, said)

    def performed(self, tool: str, said: dict[str, Any]) -> dict[str, Any]:
        self.server.hold.at("before")
        try:
            answer = self.server.books.perform(
                tool, said["args"], said["idempotency_key"]
            )
        except KeyReused:
            raise Problem(422, "key_reused") from None
        except sqlite3.OperationalError:
            raise Problem(503, "busy") from None
        self.server.hold.at("after")
        return answer

    def answer(self, status: int, body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


def main(address: str, file: str, data: str) -> None:
    """Serve until killed; a file that is there already is carried on with."""
    world = tasks.world(Path(data))
    books = (
        Books(Path(file), world.products)
        if Path(file).exists()
        else Books.open_new(Path(file), world)
    )
    Server(address, books, os.environ[SECRET]).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])

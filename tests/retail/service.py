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
from pathlib import Path
from typing import Any

from tests.retail import tasks
from tests.retail.books import Books
from tests.retail.store import EFFECTS
from world.services import SECRET, Answer, KeyReused, Service, ServiceHandler

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


class Store(Service):
    """One set of books."""

    def __init__(self, address: str, books: Books, secret: str) -> None:
        super().__init__(address, StoreHandler, secret)
        self.books = books
        self.hold = Hold()


class StoreHandler(ServiceHandler):
    """The three calls above."""

    server: Store

    def do_POST(self) -> None:
        body = self.read_body()
        first, _, rest = self.path.strip("/").partition("/")
        try:
            if first == "hold":
                self.answer(200, {"held": self.server.hold.ask(rest)})
            elif not self.is_signed(body):
                raise Problem(401, "bad_signature")
            else:
                self.answer(200, self.serve(first, rest, json.loads(body)))
        except Problem as problem:
            self.answer(problem.status, {"code": problem.code})

    def serve(self, tool: str, rest: str, payload: dict[str, Any]) -> Answer:
        if tool not in EFFECTS or payload.get("tool") != tool:
            raise Problem(404, "no_such_tool")
        if rest == "look-up":
            return self.server.books.look_up(tool, payload["idempotency_key"])
        if self.headers["Idempotency-Key"] != payload["idempotency_key"]:
            raise Problem(400, "key_missing")
        return self.perform(tool, payload)

    def perform(self, tool: str, payload: dict[str, Any]) -> Answer:
        self.server.hold.at("before")
        try:
            answer = self.server.books.perform(
                tool, payload["args"], payload["idempotency_key"]
            )
        except KeyReused:
            raise Problem(422, "key_reused") from None
        except sqlite3.OperationalError:
            raise Problem(503, "busy") from None
        self.server.hold.at("after")
        return answer


def main(address: str, file: str, data: str) -> None:
    """Serve until killed; a file that is there already is carried on with."""
    world, path = tasks.world(Path(data)), Path(file)
    books = (
        Books(path, world.products) if path.exists() else Books.open_new(path, world)
    )
    Store(address, books, os.environ[SECRET]).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])

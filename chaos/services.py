"""The services of others, as a process: `python -m chaos.services <address> <file>`.

    POST /<tool>            the effect, in the way of the tool's class
    POST /<tool>/look-up    what became of a key
    POST /own/<tool>        the same for an agent that performs its effect itself
    POST /hooks/<agent>     a webhook to an agent's server (chaos/receivers.py)

A keyed service does a key once. A queryable one does what it is told as often as it is
told, but not for a fence older than one it knows: between our last look at the lease
and the first byte no gate can hold back a process that slept. An opaque one does it
always.
Some calls get no answer, or a late one: before or after the effect.

The ledger is what the services really did, in one SQLite file that survives every
fault. An effect is a row; nothing in the file stops a key from being there twice, only
the services' own ways do.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from .receivers import PostLedger, WebhookReceiver

SCHEMA = """
    CREATE TABLE IF NOT EXISTS effect (
        id INTEGER PRIMARY KEY, at REAL, tool TEXT, key TEXT, execution TEXT,
        fence INTEGER, args TEXT
    );
    CREATE TABLE IF NOT EXISTS call (
        id INTEGER PRIMARY KEY, at REAL, what TEXT, tool TEXT, key TEXT, fence INTEGER,
        answer TEXT
    );
    CREATE INDEX IF NOT EXISTS effect_by_key ON effect (key);
    CREATE INDEX IF NOT EXISTS call_by_key ON call (key);
"""


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """One call of a service, as the gate or an agent sent it."""

    tool: str
    key: str
    execution: str
    fence: int
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Effect:
    """Something that happened, once for each row."""

    at: float
    tool: str
    key: str
    execution: str
    fence: int
    args: dict[str, Any]


class Ledger:
    """One writer at a time; every call is on the disk before it is answered."""

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(file, timeout=30, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.executescript(SCHEMA)

    def times_asked(self, key: str) -> int:
        """How often the effect of this key was asked for, refusals included."""
        return self._count(
            "SELECT count(*) FROM call WHERE key = ? AND what = 'do'", key
        )

    def happened(self, key: str) -> int:
        return self._count("SELECT count(*) FROM effect WHERE key = ?", key)

    def happened_of(self, execution: str) -> bool:
        """What the service's books say of one of the gate's executions."""
        query = "SELECT count(*) FROM effect WHERE execution = ?"
        return bool(self._count(query, execution))

    def newest_fence(self, key: str) -> int:
        return self._count("SELECT max(fence) FROM call WHERE key = ?", key)

    def _count(self, query: str, key: str) -> int:
        with self._lock:
            return int(self._db.execute(query, [key]).fetchone()[0] or 0)

    def do(self, asked: ServiceCall) -> None:
        """It happens now."""
        with self._lock, self._db as db:
            db.execute(
                "INSERT INTO effect (at, tool, key, execution, fence, args)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [
                    time.time(),
                    asked.tool,
                    asked.key,
                    asked.execution,
                    asked.fence,
                    json.dumps(dict(asked.args), sort_keys=True),
                ],
            )

    def note(self, what: str, asked: ServiceCall, answer: str) -> None:
        """That the service was called, and what it said."""
        with self._lock, self._db as db:
            db.execute(
                "INSERT INTO call (at, what, tool, key, fence, answer)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [time.time(), what, asked.tool, asked.key, asked.fence, answer],
            )

    def effects(self) -> list[Effect]:
        """Everything that happened, in order."""
        rows = self._db.execute(
            "SELECT at, tool, key, execution, fence, args FROM effect ORDER BY id"
        )
        return [
            Effect(at, tool, key, execution, fence, json.loads(args))
            for at, tool, key, execution, fence, args in rows
        ]

    def calls(self) -> dict[str, int]:
        """How often the services were called, by what for and what they said."""
        rows = self._db.execute(
            "SELECT what || ' ' || answer, count(*) FROM call GROUP BY 1 ORDER BY 1"
        )
        return dict(rows.fetchall())

    def close(self) -> None:
        self._db.close()


SECRET = "COUNTERSEAL_WEBHOOK_SECRET"  # noqa: S105 the name of a variable
CLASSES = {
    "note": "keyed",
    "tag": "queryable",
    "pay": "keyed",
    "ship": "queryable",
    "letter": "opaque",
    "repay": "keyed",
    "deploy": "keyed",
    "wipe": "keyed",
}
# Of a thousand first calls of a key, how many end so.
NO_ANSWER_BEFORE, NO_ANSWER_AFTER, LATE = 15, 30, 50
LATE_S = 1.3  # more than the gate waits
BUSY_S = 0.01  # what an effect takes


class Server(ThreadingHTTPServer):
    """Threads, one ledger, one secret."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self, address: str, ledger: Ledger, secret: str, hooks: WebhookReceiver
    ) -> None:
        host, _, port = address.rpartition(":")
        super().__init__((host, int(port)), Handler)
        self.ledger = ledger
        self.webhook = Webhook(secret)
        self.hooks = hooks
        self.locks: dict[str, threading.Lock] = defaultdict(threading.Lock)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Callers are killed here all the time."""


class Handler(BaseHTTPRequestHandler):
    """The calls above."""

    server: Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"] or 0))
        first, _, rest = self.path.strip("/").partition("/")
        if first == "hooks":
            return self._hear(rest, raw)
        own = first == "own"
        if not own and not self._signed(raw):
            return self._answer(401, {"code": "bad_signature"})
        asked = _asked(json.loads(raw), rest if own else first)
        with self.server.locks[asked.key]:  # one key is one row of theirs
            found = self._look(asked) if rest == "look-up" else self._do(asked)
        if found is None:
            self.close_connection = True
            return None
        return self._answer(200, found)

    def _hear(self, agent: str, raw: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.hooks.hear(agent, headers, raw)
        if answer.status is None:
            self.close_connection = True
            return
        self._answer(answer.status, {}, **answer.headers)

    def _signed(self, raw: bytes) -> bool:
        try:
            self.server.webhook.verify(raw, dict(self.headers), json_parse=False)
        except (WebhookVerificationError, ValueError):
            return False
        return True

    def _look(self, asked: ServiceCall) -> dict[str, Any]:
        found = bool(self.server.ledger.happened(asked.key))
        self.server.ledger.note("look", asked, "found" if found else "not found")
        if found:
            return {"status": "succeeded", "result": {"seen": True}}
        return {"status": "not_found"}

    def _do(self, asked: ServiceCall) -> dict[str, Any] | None:
        """The effect, or not; None is no answer."""
        ledger = self.server.ledger
        mishap = _mishap(asked, ledger.times_asked(asked.key))
        if mishap == "lost":
            ledger.note("do", asked, "lost before")
            return None
        answer = self._perform(asked)
        ledger.note("do", asked, mishap or str(answer["status"]))
        if mishap == "late":
            time.sleep(LATE_S)
        return None if mishap == "unsaid" else answer

    def _perform(self, asked: ServiceCall) -> dict[str, Any]:
        ledger, way = self.server.ledger, CLASSES[asked.tool]
        if _declines(asked, ledger.times_asked(asked.key)):
            return _failed("declined")
        if way == "queryable" and asked.fence < ledger.newest_fence(asked.key):
            return _failed("old_fence")
        if way != "keyed" or not ledger.happened(asked.key):
            time.sleep(BUSY_S)
            ledger.do(asked)
        return {"status": "succeeded", "result": {"reference": asked.key[:16]}}

    def _answer(self, status: int, body: dict[str, Any], **more: str) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        for name, value in more.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


def _asked(said: dict[str, Any], tool: str) -> ServiceCall:
    return ServiceCall(
        tool,
        said["idempotency_key"],
        said.get("execution", ""),
        int(said.get("fence", 0)),
        said.get("args", {}),
    )


def _failed(code: str) -> dict[str, Any]:
    return {"status": "failed", "error": {"code": code, "detail": "not done"}}


def _declines(asked: ServiceCall, before: int) -> bool:
    note = asked.args.get("note")
    return note == "decline" or (note == "decline once" and before == 0)


def _mishap(asked: ServiceCall, before: int) -> str:
    """What goes wrong with the first call of a key; the same whenever it is run."""
    if before or asked.args.get("note"):
        return ""
    drawn = int(hashlib.sha256(asked.key.encode()).hexdigest()[:8], 16) % 1000
    if drawn < NO_ANSWER_BEFORE:
        return "lost"
    if drawn < NO_ANSWER_AFTER:
        return "unsaid"
    return "late" if drawn < LATE else ""


def main(address: str, file: str) -> None:
    """Serve until killed; a ledger that is there is carried on with."""
    hooks = WebhookReceiver(PostLedger(Path(file)))
    Server(address, Ledger(Path(file)), os.environ[SECRET], hooks).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A signed call, answered once per idempotency key.

The effect and the row of its key are one SQLite transaction: there is never one
without the other, whatever dies when.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from . import database
from .database import Connection, Row
from .effects import EFFECTS, Args, Mark, Result
from .refusals import Refusal

Answer = dict[str, Any]


class KeyReused(Exception):
    """The key came before with another tool or other arguments. Nothing was done."""


@dataclass(frozen=True, slots=True)
class Call:
    """One effect asked for."""

    tool: str
    args: Args
    key: str

    @property
    def digest(self) -> str:
        """What is asked, in short, to tell a repetition from a reused key."""
        text = json.dumps([self.tool, self.args], sort_keys=True)
        return sha256(text.encode()).hexdigest()


def perform(store: Path, call: Call) -> Answer:
    """Do what the call asks, or answer as before when its key has come before.

    A success is final. A refusal is not: nothing happened then, so the same key is
    tried afresh. Raises KeyReused.
    """
    with database.writing(store) as db:
        kept = _receive(db, call)
        if kept["status"] == "succeeded":
            return kept
        answer = _attempt(db, call)
        _keep(db, call.key, answer)
        return answer


def look_up(store: Path, tool: str, key: str) -> Answer:
    """What became of a key, for a caller that lost the answer."""
    with database.reading(store) as db:
        row = _row(db, key)
    if row is None or row["tool"] != tool:
        return {"status": "not_found"}
    return _answer(row)


def _receive(db: Connection, call: Call) -> Answer:
    """Count the call under its key; the stored answer, if any."""
    at = database.now()
    row = _row(db, call.key)
    if row is None:
        db.execute(
            "INSERT INTO call (key, tool, digest, first_at, last_at)"
            " VALUES (?, ?, ?, ?, ?)",
            (call.key, call.tool, call.digest, at, at),
        )
        return {"status": "new"}
    if row["digest"] != call.digest:
        raise KeyReused(call.key)
    db.execute(
        "UPDATE call SET received = received + 1, last_at = ? WHERE key = ?",
        (at, call.key),
    )
    return _answer(row)


def _attempt(db: Connection, call: Call) -> Answer:
    db.execute("SAVEPOINT effect")
    try:
        mark = Mark(call.key, database.now())
        result: Result = EFFECTS[call.tool](db, call.args, mark)
    except Refusal as refusal:
        db.execute("ROLLBACK TO effect")
        error = {"code": refusal.code, "detail": refusal.detail}
        return {"status": "failed", "error": error}
    db.execute("RELEASE effect")
    return {"status": "succeeded", "result": result}


def _keep(db: Connection, key: str, answer: Answer) -> None:
    db.execute("UPDATE call SET answer = ? WHERE key = ?", (json.dumps(answer), key))


def _row(db: Connection, key: str) -> Row | None:
    row: Row | None = db.execute("SELECT * FROM call WHERE key = ?", (key,)).fetchone()
    return row


def _answer(row: Row) -> Answer:
    answer: Answer = json.loads(row["answer"])
    return answer

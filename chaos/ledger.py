"""What the outside world really did, in one SQLite file that survives everything. An
effect is a row; nothing in the file stops a key from being there twice, only the
services' own ways do."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
class Asked:
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

    def do(self, asked: Asked) -> None:
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

    def note(self, what: str, asked: Asked, answer: str) -> None:
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

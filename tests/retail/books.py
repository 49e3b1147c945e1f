"""What the store service keeps, in one SQLite file that survives a killed process.

An effect, the records it changed and the answer to its key are one transaction. The
effects are counted as they happen: nothing in the file stops a key from being there
twice, only `perform` does.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.retail import store
from tests.retail.store import Record, Refusal, World

SCHEMA = """
    CREATE TABLE record (kind TEXT, id TEXT, body TEXT, PRIMARY KEY (kind, id));
    CREATE TABLE answer (
        key TEXT PRIMARY KEY, said TEXT, body TEXT,
        asked INTEGER DEFAULT 1, looked_up INTEGER DEFAULT 0
    );
    CREATE TABLE effect (number INTEGER PRIMARY KEY, key TEXT, tool TEXT);
"""
NOT_FOUND = {"status": "not_found"}


class KeyReused(Exception):
    """The key came before, with another call."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How often a key was asked for, was looked up, and took effect."""

    asked: int
    looked_up: int
    effects: int


@dataclass(frozen=True)
class Books:
    """The file, and the catalogue, which no call changes."""

    file: Path
    products: Mapping[str, Record]

    @classmethod
    def open_new(cls, file: Path, world: World) -> Books:
        """Write the records of a world into a new file."""
        books = cls(file, world.products)
        with books._connection() as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(SCHEMA)
            _save(db, "user", world.users)
            _save(db, "order", world.orders)
        return books

    def perform(self, tool: str, args: Mapping[str, Any], key: str) -> dict[str, Any]:
        """The effect, or the stored answer of its key. Raises `KeyReused`."""
        said = json.dumps([tool, args], sort_keys=True)
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")  # others wait until the key is answered
            stored = _stored(db, key, said)
            if stored is not None:
                db.execute("UPDATE answer SET asked = asked + 1 WHERE key = ?", [key])
                return stored
            answer = self._effect(db, tool, args, key)
            db.execute(
                "INSERT INTO answer (key, said, body) VALUES (?, ?, ?)",
                [key, said, json.dumps(answer)],
            )
            return answer

    def _effect(
        self, db: sqlite3.Connection, tool: str, args: Mapping[str, Any], key: str
    ) -> dict[str, Any]:
        world = self._around(db, args)
        try:
            result = store.perform(world, tool, args)
        except Refusal as refusal:
            error = {"code": refusal.code, "detail": refusal.detail}
            return {"status": "failed", "error": error}
        _save(db, "user", world.users)
        _save(db, "order", world.orders)
        db.execute("INSERT INTO effect (key, tool) VALUES (?, ?)", [key, tool])
        return {"status": "succeeded", "result": result}

    def _around(self, db: sqlite3.Connection, args: Mapping[str, Any]) -> World:
        """What a call can touch: the order it names, and the user of either."""
        orders = _load(db, "order", args.get("order_id"))
        owners = [order["user_id"] for order in orders.values()]
        users = _load(db, "user", *owners, args.get("user_id"))
        return World(users, orders, self.products)

    def look_up(self, tool: str, key: str) -> dict[str, Any]:
        """What became of a key."""
        with self._connection() as db:
            db.execute(
                "UPDATE answer SET looked_up = looked_up + 1 WHERE key = ?", [key]
            )
            row = db.execute("SELECT said, body FROM answer WHERE key = ?", [key])
            said, body = row.fetchone() or ("[null]", "{}")
        return dict(json.loads(body)) if json.loads(said)[0] == tool else NOT_FOUND

    def world(self) -> World:
        """Everything as it stands."""
        with self._connection() as db:
            return World(_load(db, "user"), _load(db, "order"), self.products)

    def counts(self) -> dict[str, Counts]:
        """By key."""
        with self._connection() as db:
            rows = db.execute(
                "SELECT key, asked, looked_up, (SELECT count(*) FROM effect"
                " WHERE effect.key = answer.key) FROM answer"
            ).fetchall()
        return {key: Counts(*numbers) for key, *numbers in rows}

    def effects(self) -> int:
        """Of all keys, with or without an answer."""
        with self._connection() as db:
            return int(db.execute("SELECT count(*) FROM effect").fetchone()[0])

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """One transaction, on the disk when it ends."""
        db = sqlite3.connect(self.file, timeout=30)
        try:
            db.execute("PRAGMA synchronous = FULL")
            with db:
                yield db
        finally:
            db.close()


def _stored(db: sqlite3.Connection, key: str, said: str) -> dict[str, Any] | None:
    row = db.execute("SELECT said, body FROM answer WHERE key = ?", [key]).fetchone()
    if row is None:
        return None
    if row[0] != said:
        raise KeyReused
    return dict(json.loads(row[1]))


def _save(db: sqlite3.Connection, kind: str, records: Mapping[str, Record]) -> None:
    db.executemany(
        "INSERT OR REPLACE INTO record VALUES (?, ?, ?)",
        [(kind, name, json.dumps(record)) for name, record in records.items()],
    )


def _load(db: sqlite3.Connection, kind: str, *ids: str | None) -> dict[str, Record]:
    """The records of these ids, or of all when none is asked for."""
    query = "SELECT id, body FROM record WHERE kind = ?"
    if ids:
        query += f" AND id IN ({', '.join('?' * len(ids))})"
    return {name: json.loads(body) for name, body in db.execute(query, [kind, *ids])}

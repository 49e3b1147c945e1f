"""What the store service keeps, in one SQLite file that survives a killed process.

An effect, the records it changed and the answer to its key are one transaction. The
effects are counted as they happen: nothing in the file stops a key from being there
twice, only `perform` does.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.retail import store
from tests.retail.store import Record, World
from world.database import Connection, Ledger, add_entry, load_entries
from world.services import Answer, KeyReused, Refusal

SCHEMA = "CREATE TABLE record (kind, id, body, PRIMARY KEY (kind, id))"
NOT_FOUND = {"status": "not_found"}


@dataclass(frozen=True)
class Outcome:
    """What a key was answered: `request` and `answer` are JSON."""

    key: str
    request: str
    answer: str


@dataclass(frozen=True)
class Call:
    """A key was asked for again (`do`) or looked up (`look`)."""

    key: str
    what: str


@dataclass(frozen=True)
class Effect:
    """Something that happened, once for each row."""

    key: str
    tool: str


@dataclass(frozen=True, slots=True)
class Counts:
    """How often a key was asked for, was looked up, and took effect."""

    asked: int
    looked_up: int
    effects: int


class Books(Ledger):
    """The file, and the catalogue, which no call changes."""

    def __init__(self, file: Path, products: Mapping[str, Record]) -> None:
        super().__init__(file)
        self.products = products

    @classmethod
    def open_new(cls, file: Path, world: World) -> Books:
        """Write the records of a world into a new file."""
        books = cls(file, world.products)
        with books.writing() as db:
            db.execute(SCHEMA)
            _save(db, world)
        return books

    def perform(self, tool: str, args: Mapping[str, Any], key: str) -> Answer:
        """The effect, or the stored answer of its key. Raises `KeyReused`."""
        request = json.dumps([tool, args], sort_keys=True)
        with self.writing() as db:  # others wait until the key is answered
            for outcome in load_entries(db, Outcome, key=key):
                if outcome.request != request:
                    raise KeyReused
                add_entry(db, Call(key, "do"))
                return dict(json.loads(outcome.answer))
            answer = self._attempt(db, tool, args, key)
            add_entry(db, Outcome(key, request, json.dumps(answer)))
            return answer

    def _attempt(
        self, db: Connection, tool: str, args: Mapping[str, Any], key: str
    ) -> Answer:
        world = self._around(db, args)
        try:
            result = store.perform(world, tool, args)
        except Refusal as refusal:
            return refusal.answer
        _save(db, world)
        add_entry(db, Effect(key, tool))
        return {"status": "succeeded", "result": result}

    def _around(self, db: Connection, args: Mapping[str, Any]) -> World:
        """What a call can touch: the order it names, and the user of either."""
        orders = _load(db, "order", args.get("order_id"))
        owners = [order["user_id"] for order in orders.values()]
        users = _load(db, "user", *owners, args.get("user_id"))
        return World(users, orders, self.products)

    def look_up(self, tool: str, key: str) -> Answer:
        """What became of a key."""
        with self.writing() as db:
            for outcome in load_entries(db, Outcome, key=key):
                add_entry(db, Call(key, "look"))
                if json.loads(outcome.request)[0] == tool:
                    return dict(json.loads(outcome.answer))
        return NOT_FOUND

    def world(self) -> World:
        """Everything as it stands."""
        with self.writing() as db:
            return World(_load(db, "user"), _load(db, "order"), self.products)

    def counts(self) -> dict[str, Counts]:
        """By key."""
        calls = Counter((call.key, call.what) for call in self.load(Call))
        effects = Counter(effect.key for effect in self.load(Effect))
        return {
            key: Counts(1 + calls[key, "do"], calls[key, "look"], effects[key])
            for key in (outcome.key for outcome in self.load(Outcome))
        }


def _save(db: Connection, world: World) -> None:
    db.executemany(
        "INSERT OR REPLACE INTO record VALUES (?, ?, ?)",
        [
            (kind, name, json.dumps(record))
            for kind, records in (("user", world.users), ("order", world.orders))
            for name, record in records.items()
        ],
    )


def _load(db: Connection, kind: str, *ids: str | None) -> dict[str, Record]:
    """The records of these ids, or of all when none is asked for."""
    query = "SELECT id, body FROM record WHERE kind = ?"
    if ids:
        query += f" AND id IN ({', '.join('?' * len(ids))})"
    return {name: json.loads(body) for name, body in db.execute(query, [kind, *ids])}

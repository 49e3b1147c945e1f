"""The least a correct system does: three durable commits an action, each with one
audit row, in plain psycopg 3 and tables of its own (speed.md)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from django.conf import settings

from .asked import build_proposal_body

_TABLES = """
CREATE TABLE bench_request (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    said jsonb NOT NULL,
    action_hash text NOT NULL, status text NOT NULL, version int NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE bench_effect (
    key text PRIMARY KEY,
    request bigint NOT NULL REFERENCES bench_request,
    result jsonb NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE bench_audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    request bigint NOT NULL, kind text NOT NULL, data jsonb NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
"""
_INSERT_REQUEST = """
INSERT INTO bench_request (said, action_hash, status, version)
VALUES (%s, %s, 'pending', 1) RETURNING id
"""
_APPROVE = """
UPDATE bench_request SET status = 'approved'
WHERE id = %s AND status = 'pending' AND version = 1 AND action_hash = %s
"""
_INSERT_EFFECT = "INSERT INTO bench_effect (key, request, result) VALUES (%s, %s, %s)"
_INSERT_AUDIT = "INSERT INTO bench_audit (request, kind, data) VALUES (%s, %s, %s)"


@dataclass(frozen=True, slots=True)
class FloorRequest:
    """A request of the floor that waits."""

    pk: int
    action_hash: str


class FloorClient:
    """One connection's steps, each its own commit."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    def action(self) -> None:
        """Request, decision, effect."""
        asked = self.propose()
        self.decide(asked)
        self.perform(asked)

    def propose(self) -> FloorRequest:
        asked = self._insert()
        self._audit(asked.pk, "request.opened", "agent-1")
        self.connection.commit()
        return asked

    def insert(self) -> None:
        """A request and nothing beside it: the raw insert of G4."""
        self._insert()
        self.connection.commit()

    def decide(self, asked: FloorRequest) -> None:
        done = self.connection.execute(_APPROVE, [asked.pk, asked.action_hash])
        if done.rowcount != 1:
            raise LookupError("decided by somebody else")
        self._audit(asked.pk, "decision.recorded", "rita")
        self.connection.commit()

    def perform(self, asked: FloorRequest) -> None:
        key = f"hp-{asked.pk}"
        self.connection.execute(
            _INSERT_EFFECT, [key, asked.pk, json.dumps({"refund": key})]
        )
        self._audit(asked.pk, "execution.succeeded", "executor")
        self.connection.commit()

    def _insert(self) -> FloorRequest:
        said = json.dumps(build_proposal_body("t-1"))
        digest = "sha256:" + hashlib.sha256(said.encode()).hexdigest()
        found = self.connection.execute(_INSERT_REQUEST, [said, digest]).fetchone()
        assert found is not None
        return FloorRequest(int(found[0]), digest)

    def _audit(self, pk: int, kind: str, actor: str) -> None:
        self.connection.execute(_INSERT_AUDIT, [pk, kind, json.dumps({"actor": actor})])


def connect_database(*, autocommit: bool = False) -> psycopg.Connection[Any]:
    """A plain connection to the run's database."""
    return psycopg.connect(settings.HOLDPOINT.database_url, autocommit=autocommit)


def create_floor_tables() -> None:
    """The floor's own tables."""
    with connect_database() as connection:
        connection.execute(_TABLES)


@contextmanager
def open_floor_client(number: int) -> Iterator[Callable[[], object]]:
    """One client of the whole round trip."""
    with connect_database() as connection:
        yield FloorClient(connection).action


@contextmanager
def open_insert_client(number: int) -> Iterator[Callable[[], object]]:
    """One client of the raw insert."""
    with connect_database() as connection:
        yield FloorClient(connection).insert

"""The two clients of one action: the floor's and the product's.

The floor is the least that a correct system does: three durable commits an action, each
with one audit row, in plain psycopg 3 and tables of its own. The product's client
does the same by the product's own operations with everything on: caps, stops,
look-ups, policy, sums, redaction, checkpoint, log, outbox and re-checks.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection

from agents.idempotency import StoredAnswer
from policies.models import Person
from reviews.choices import VERDICT_SPECS, Verdict
from reviews.decisions import decide
from reviews.decisions.submission import VerdictSubmission
from reviews.executions import run
from reviews.models import ApprovalRequest

from .seed import ACTIONS_A_THREAD, Seed, build_proposal_body, propose_body

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
    """A pending request of the floor."""

    pk: int
    action_hash: str


class FloorClient:
    """The steps of the floor on one connection, each its own commit."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    def action(self) -> None:
        """Propose, decide and perform."""
        asked = self.propose()
        self.decide(asked)
        self.perform(asked)

    def propose(self) -> FloorRequest:
        asked = self._insert()
        self._audit(asked.pk, "request.opened", "agent-1")
        self.connection.commit()
        return asked

    def insert(self) -> None:
        """Insert a request and nothing else: the raw insert of G4."""
        self._insert()
        self.connection.commit()

    def decide(self, asked: FloorRequest) -> None:
        done = self.connection.execute(_APPROVE, [asked.pk, asked.action_hash])
        if done.rowcount != 1:
            raise LookupError("decided by somebody else")
        self._audit(asked.pk, "decision.recorded", "rita")
        self.connection.commit()

    def perform(self, asked: FloorRequest) -> None:
        key = f"cs-{asked.pk}"
        self.connection.execute(
            _INSERT_EFFECT, [key, asked.pk, json.dumps({"refund": key})]
        )
        self._audit(asked.pk, "execution.succeeded", "executor")
        self.connection.commit()

    def _insert(self) -> FloorRequest:
        body = json.dumps(build_proposal_body("t-1"))
        digest = "sha256:" + hashlib.sha256(body.encode()).hexdigest()
        (pk,) = read_row(self.connection, _INSERT_REQUEST, [body, digest])
        return FloorRequest(int(pk), digest)

    def _audit(self, pk: int, kind: str, actor: str) -> None:
        self.connection.execute(_INSERT_AUDIT, [pk, kind, json.dumps({"actor": actor})])


def connect_database(*, autocommit: bool = False) -> psycopg.Connection[Any]:
    """A plain connection to the run's database."""
    return psycopg.connect(settings.COUNTERSEAL.database_url, autocommit=autocommit)


def read_row(
    connection: psycopg.Connection[Any], sql: str, values: Any = None
) -> tuple[Any, ...]:
    """The one row of a query."""
    row: tuple[Any, ...] | None = connection.execute(sql, values).fetchone()
    assert row is not None
    return row


def read_number(connection: psycopg.Connection[Any], sql: str) -> int:
    return int(read_row(connection, sql)[0])


def create_floor_tables() -> None:
    with connect_database() as connection:
        connection.execute(_TABLES)


@contextmanager
def open_floor_client(number: int) -> Iterator[Callable[[], object]]:
    """A floor client that does the whole round trip."""
    with connect_database() as connection:
        yield FloorClient(connection).action


@contextmanager
def open_insert_client(number: int) -> Iterator[Callable[[], object]]:
    """A floor client that only inserts."""
    with connect_database() as connection:
        yield FloorClient(connection).insert


_EXECUTION = "SELECT id FROM reviews_execution WHERE proposal_id = %s"


@dataclass
class ProductClient:
    """A client with threads of its own, all agents in turn, and one reviewer."""

    seed: Seed
    number: int
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    count: Iterator[int] = field(default_factory=itertools.count)

    def action(self) -> None:
        """Propose with a checkpoint, decide, perform once and record."""
        request = self.decide(self.propose())
        self.perform(request.proposal_id)

    def propose(self) -> StoredAnswer:
        thread, turn = divmod(next(self.count), ACTIONS_A_THREAD)
        agents = self.seed.agents
        agent = agents[(self.number + thread) % len(agents)]
        body = build_proposal_body(f"{self.run}-{self.number}-{thread}")
        return propose_body(agent, body, f"{body['thread']}-{turn}")

    def decide(
        self, stored: StoredAnswer, verdict: Verdict = Verdict.APPROVE
    ) -> ApprovalRequest:
        reviewers = self.seed.reviewers
        person = reviewers[self.number % len(reviewers)]
        return decide.decide_request(build_submission(stored, person, verdict))

    def perform(self, proposal_id: str) -> None:
        """Run the execution as the worker does, without the broker between."""
        with connection.cursor() as cursor:
            cursor.execute(_EXECUTION, [proposal_id])
            (execution_id,) = cursor.fetchone()
        run.run_execution(execution_id)


def build_submission(
    stored: StoredAnswer, person: Person, verdict: Verdict
) -> VerdictSubmission:
    """A verdict on the request of this proposal.

    The person is a copy, as a sign-in finds them: without the roles and queues that an
    earlier verdict has loaded.
    """
    request = stored.body["request"]
    return VerdictSubmission(
        request_id=request["id"],
        person=copy.copy(person),
        verdict=verdict,
        reason_code=VERDICT_SPECS[verdict].reasons[0],
        version=request["version"],
        action_hash=stored.body["action_hash"],
    )


@contextmanager
def open_product_client(seed: Seed, number: int) -> Iterator[Callable[[], object]]:
    """A product client that does the whole round trip on its own connection."""
    try:
        yield ProductClient(seed, number).action
    finally:
        connection.close()

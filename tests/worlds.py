"""A small outside world for tools of tests: a ledger in an SQLite file that several
processes share, so that what really happened can be counted afterwards."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection, transaction

from reviews.tool_services.executors import Call, KnownFailure

LEDGER = "COUNTERSEAL_TEST_LEDGER"
TAKES = "COUNTERSEAL_TEST_TAKES"  # seconds that an effect takes before it is there
# Whether the first attempt ends, once it is there, in the way its customer is named
# after; and in which.
ENDS = "COUNTERSEAL_TEST_ENDS"


@contextmanager
def ledger() -> Iterator[sqlite3.Connection]:
    """The file named by the environment, made when it is not there."""
    connection = sqlite3.connect(os.environ[LEDGER], timeout=30)
    try:
        with connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS effect (id INTEGER PRIMARY KEY,"
                " tool TEXT, key TEXT, fence INTEGER, args TEXT)"
            )
            connection.execute("CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY)")
        with connection:
            yield connection
    finally:
        connection.close()


def _take_time() -> None:
    time.sleep(float(os.environ.get(TAKES, "0")))


def _outlast() -> None:
    """Past the soft time limit, which it does not heed, until it is killed."""
    while True:
        try:
            time.sleep(60)
        except SoftTimeLimitExceeded:
            continue


WAYS: dict[str, Callable[[], object]] = {
    "exit": lambda: sys.exit(1),
    "soft-limit": lambda: time.sleep(60),
    "hard-limit": _outlast,
    "no-memory": lambda: bytearray(1 << 60),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
}


def _end(call: Call) -> None:
    if ENDS in os.environ and call.fence == 1:
        way, _, _ = str(call.args["customer"]).partition(":")
        WAYS[way]()


def _add(connection: sqlite3.Connection, call: Call) -> None:
    connection.execute(
        "INSERT INTO effect (tool, key, fence, args) VALUES (?, ?, ?, ?)",
        [call.tool, call.idempotency_key, call.fence, json.dumps(dict(call.args))],
    )


def keyed(call: Call) -> dict[str, Any]:
    """A provider that honours our idempotency key."""
    _take_time()
    with ledger() as connection:
        new = connection.execute(
            "INSERT OR IGNORE INTO kept VALUES (?)", [call.idempotency_key]
        ).rowcount
        if new:
            _add(connection, call)
    _end(call)
    return {"done": call.idempotency_key}


def plain(call: Call) -> dict[str, Any]:
    """A provider that does what it is told as often as it is told."""
    _take_time()
    with ledger() as connection:
        _add(connection, call)
    _end(call)
    return {"done": True}


def timed(call: Call) -> dict[str, Any]:
    """A provider that notes when it was asked, by the clock that all processes of a
    host share, and then takes a moment."""
    with Path(os.environ[LEDGER]).with_suffix(".times").open("a") as file:
        file.write(f"{time.monotonic()} {call.idempotency_key}\n")
    time.sleep(0.05)
    return {"done": True}


def times() -> list[float]:
    """When each effect of `timed` began."""
    path = Path(os.environ[LEDGER]).with_suffix(".times")
    lines = path.read_text().splitlines() if path.exists() else []
    return [float(line.partition(" ")[0]) for line in lines]


def careless(call: Call) -> dict[str, Any]:
    """A provider that says it honours our key, and does not: each answer is of an
    effect of its own."""
    with ledger() as connection:
        _add(connection, call)
        number = connection.execute("SELECT max(id) FROM effect").fetchone()[0]
    return {"number": number}


def find(call: Call) -> dict[str, Any]:
    """Look up by our reference."""
    with ledger() as connection:
        count = connection.execute(
            "SELECT count(*) FROM effect WHERE key = ?", [call.idempotency_key]
        ).fetchone()[0]
    status = "succeeded" if count else "not_found"
    return {"status": status, "result": {"seen": count}, "count": count}


def failing(call: Call) -> dict[str, Any]:
    raise KnownFailure("declined", "the provider declined")


def repaying(call: Call) -> dict[str, Any]:
    """A provider that declines some customers for as long as a test says so."""
    if call.args["customer"] in WORLD.get("declined", ()):
        raise KnownFailure("declined", "the provider declined")
    return keyed(call)


def effects(path: Path | str | None = None) -> list[tuple[str, str, dict[str, Any]]]:
    """(tool, key, args) of everything that happened, in order."""
    if path is not None:
        os.environ[LEDGER] = str(path)
    with ledger() as connection:
        rows = connection.execute("SELECT tool, key, args FROM effect ORDER BY id")
        return [(tool, key, json.loads(args)) for tool, key, args in rows]


WORLD: dict[str, Any] = {}


def read(args: Mapping[str, Any]) -> dict[str, Any]:
    """A reader whose answer a test sets in WORLD (in-process tests only)."""
    return {
        "before": WORLD.get("before", {"amount": "0.00"}),
        "keys": WORLD.get("keys", {"customer": str(args.get("customer", "C-1"))}),
        "facts": WORLD.get("facts", {}),
        "preconditions": WORLD.get("preconditions", {"row_version": 1}),
        "source": "test world",
    }


def rewrite(model: type[Any], pk: Any, **values: Any) -> None:
    """Change a row that may never change, as an attacker with the table would."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        model.objects.filter(pk=pk).update(**values)
        cursor.execute("SET LOCAL session_replication_role = origin")

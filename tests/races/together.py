"""Making things happen at the same moment: by many threads with a connection each, and
by one rival that runs at exactly one place of another's work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection

from journal.errors import DomainError
from tests.stack import wait_until

Call = Callable[[], Any]
PATIENCE_S = 20.0


@dataclass(frozen=True)
class Result:
    """What became of one call: its value or the refusal, and how long it took."""

    value: Any
    refusal: DomainError | None
    seconds: float

    @property
    def won(self) -> bool:
        return self.refusal is None


class Together:
    """Threads that stay, each with its own connection, and start as one."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.barrier = threading.Barrier(size)
        self.pool = ThreadPoolExecutor(size, initializer=connection.ensure_connection)

    def __enter__(self) -> Together:
        return self

    def __exit__(self, *error: object) -> None:
        # One a thread: each waits at the barrier until all of them have come.
        list(self.pool.map(lambda _: self._hang_up(), range(self.size)))
        self.pool.shutdown()

    def run(self, calls: Sequence[Call]) -> list[Result]:
        """All calls at once; as many as there are threads. Any error that is not a
        refusal is the test's failure."""
        assert len(calls) == self.size
        return list(self.pool.map(self._at_the_start, calls))

    def _at_the_start(self, call: Call) -> Result:
        self.barrier.wait(PATIENCE_S)
        return measured(call)

    def _hang_up(self) -> None:
        self.barrier.wait(PATIENCE_S)
        connection.close()


def measured(call: Call) -> Result:
    start = time.perf_counter()
    try:
        value, refusal = call(), None
    except DomainError as error:
        value, refusal = None, error
    return Result(value, refusal, time.perf_counter() - start)


def at_once(*calls: Call) -> list[Result]:
    """These calls, each in a thread and on a connection of its own."""
    with Together(len(calls)) as together:
        return together.run(calls)


def elsewhere(call: Call) -> Result:
    """A call on another connection, to its end."""
    return at_once(call)[0]


@dataclass
class Rival:
    """Somebody else's call, and what became of it."""

    call: Call
    future: Future[Result] | None = None

    @property
    def result(self) -> Result:
        assert self.future is not None, "the rival never ran"
        return self.future.result(PATIENCE_S)


def before(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, call: Call
) -> Rival:
    """The rival runs from beginning to end where `module.name` is called next."""
    rival = Rival(call)

    def run() -> None:
        rival.future = Future()
        rival.future.set_result(elsewhere(call))

    _once(monkeypatch, module, name, run)
    return rival


def while_held(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, call: Call
) -> Rival:
    """The rival begins where `module.name` is called next, and is left waiting for a
    lock that the caller holds; it ends when the caller lets go."""
    rival = Rival(call)
    pool = ThreadPoolExecutor(1)

    def run() -> None:
        rival.future = pool.submit(_alone, call)
        wait_until(_someone_waits, PATIENCE_S, lambda: "nobody waits for the lock")

    _once(monkeypatch, module, name, run)
    return rival


def _alone(call: Call) -> Result:
    try:
        return measured(call)
    finally:
        connection.close()


def _once(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, first: Call) -> None:
    original = getattr(module, name)
    mine = threading.get_ident()
    ran: list[bool] = []

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if not ran and threading.get_ident() == mine:
            ran.append(True)
            first()
        return original(*args, **kwargs)

    monkeypatch.setattr(module, name, wrapped)


def _someone_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # kept for a transaction
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND datname = current_database()"
        )
        row = cursor.fetchone()
    return bool(row and row[0])

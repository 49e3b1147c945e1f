"""Which workers and beats run: each enters itself in the broker every few seconds.

Workers have no port, and answer no remote commands: those would let anybody with write
access to the broker stop them. So each writes a line about itself, by the broker's
clock, and takes it back when it is told to stop. A line that is not renewed belongs to
a process that was killed, or that cannot reach the broker.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import redis
from celery.signals import (
    beat_embedded_init,
    beat_init,
    worker_ready,
    worker_shutting_down,
)
from django.conf import settings

from . import connections

REGISTER = "counterseal:workers"
REPORT_S = 5.0
SILENT_S = 30.0  # a process that reported no sooner is missed
FORGOTTEN_S = 600.0  # and nobody asks after it for longer
MAX_LISTED = 200
BEAT_QUEUE = "beat"  # stands among the queues of who runs the clock of the sweeps


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """One process, as it described itself last."""

    host: str
    pid: int
    queues: Sequence[str]
    processes: int
    up_for: float
    silent_for: float

    @property
    def is_missed(self) -> bool:
        return self.silent_for > SILENT_S


class WorkerRegister:
    """The line of this process, and the thread that renews it. Connects itself to
    Celery."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        for signal, handler in (
            (worker_ready, self.enter_worker),
            (beat_init, self.enter_beat),
            (beat_embedded_init, self.leave),  # its worker's line names it
            (worker_shutting_down, self.leave),
        ):
            signal.connect(handler, weak=False)

    def enter_worker(self, sender: Any = None, **kwargs: Any) -> None:
        """The main process of a worker, once it takes messages."""
        controller = sender.controller
        queues = sorted(sender.app.amqp.queues.consume_from)
        if getattr(controller, "beat", None):
            queues.append(BEAT_QUEUE)
        self.enter(queues, int(controller.concurrency or 0))

    def enter_beat(self, **kwargs: Any) -> None:
        """A process that only tells the time."""
        self.enter([BEAT_QUEUE], 0)
        atexit.register(self.end)

    def enter(self, queues: Sequence[str], processes: int) -> None:
        """Begin to report this process."""
        self._stop.clear()
        report = {"queues": list(queues), "processes": processes}
        self._thread = threading.Thread(
            target=self._run, args=[report], name="register", daemon=True
        )
        self._thread.start()

    def leave(self, **kwargs: Any) -> None:
        """Take the line back. Only sets a flag: a signal may be why it is called."""
        self._stop.set()

    def end(self) -> None:
        """Take the line back, and wait until that is done."""
        self.leave()
        if self._thread is not None:
            self._thread.join(2 * connections.BROKER_CONNECT_TIMEOUT_S)

    def _run(self, report: dict[str, Any]) -> None:
        field = f"{socket.gethostname()}:{os.getpid()}"
        while True:
            with suppress(redis.RedisError), _connect_broker() as broker:
                now, _ = broker.time()
                report.setdefault("began", now)
                broker.hset(REGISTER, field, json.dumps({**report, "at": now}))
                broker.expire(REGISTER, int(FORGOTTEN_S))
            if self._stop.wait(REPORT_S):
                break
        with suppress(redis.RedisError), _connect_broker() as broker:
            broker.hdel(REGISTER, field)


def list_workers() -> list[WorkerLine]:
    """Every process that reported lately, by host. Raises redis.RedisError."""
    with _connect_broker() as broker:
        lines = _read_lines(broker).values()
    lately = [line for line in lines if line.silent_for <= FORGOTTEN_S]
    return sorted(lately, key=lambda line: (line.host, line.pid))[:MAX_LISTED]


def forget_silent() -> None:
    """Take back the lines of processes that nobody asks after any more. Raises
    redis.RedisError."""
    with _connect_broker() as broker:
        lines = _read_lines(broker)
        gone = [at for at, line in lines.items() if line.silent_for > FORGOTTEN_S]
        if gone:
            broker.hdel(REGISTER, *gone)


def _read_lines(broker: Any) -> dict[bytes, WorkerLine]:
    now, _ = broker.time()
    return {
        field: line
        for field, text in broker.hgetall(REGISTER).items()
        if (line := _read_line(field, text, now)) is not None
    }


def _read_line(field: bytes, text: bytes, now: int) -> WorkerLine | None:
    """The line of an entry; None for one that is not ours: anybody with access to the
    broker may write there."""
    host, _, pid = field.decode(errors="replace").rpartition(":")
    try:
        report = json.loads(text)
        return WorkerLine(
            host=host[:80],
            pid=int(pid),
            queues=[str(name)[:40] for name in report["queues"][:20]],
            processes=int(report["processes"]),
            up_for=max(0.0, float(now - int(report["began"]))),
            silent_for=max(0.0, float(now - int(report["at"]))),
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


@contextmanager
def _connect_broker() -> Iterator[Any]:
    client = redis.Redis.from_url(
        settings.COUNTERSEAL.redis_url,
        socket_connect_timeout=connections.BROKER_CONNECT_TIMEOUT_S,
        socket_timeout=connections.BROKER_CONNECT_TIMEOUT_S,
    )
    try:
        yield client
    finally:
        client.close()

"""Load on the product: threads, kept-alive connections, and connections that wait.

The HTTP client costs little, so that what is timed is the server: its requests are
written by hand, and all its connections share one event loop.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import math
import threading
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

# Not hitl's: this module also runs in the environments of the peers.
LOOPBACK = "127.0.0.1"
WARM_UP = 3  # actions of each client that nobody counts
PATIENCE_S = 60.0

MakeClient = Callable[[int], AbstractContextManager[Callable[[], object]]]


@dataclass(frozen=True, slots=True)
class Run:
    """What some clients did in one stretch. Times are in seconds."""

    count: int
    seconds: float
    times: list[float] = field(repr=False)

    @property
    def rate(self) -> float:
        """Actions a second."""
        return self.count / self.seconds

    def at(self, percent: float) -> float:
        """The time within which so many of a hundred were done."""
        return percentile(self.times, percent)


def percentile(times: Sequence[float], percent: float) -> float:
    """The percentile by nearest rank, which is always a time that was measured."""
    ordered = sorted(times)
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1]


def run_clients(make: MakeClient, *, threads: int, seconds: float) -> Run:
    """Run clients in so many threads, each with its own client, for so long.

    Each warms up, then all begin together; an action that was begun is counted.
    """
    start = threading.Barrier(threads, timeout=120)
    with ThreadPoolExecutor(threads) as pool:
        jobs = [
            pool.submit(_run_client, make, number, start, seconds)
            for number in range(threads)
        ]
        stretches = [job.result() for job in jobs]
    times = [taken for _, _, taken_all in stretches for taken in taken_all]
    began = min(began for began, _, _ in stretches)
    ended = max(ended for _, ended, _ in stretches)
    return Run(len(times), ended - began, times)


def _run_client(
    make: MakeClient, number: int, start: threading.Barrier, seconds: float
) -> tuple[float, float, list[float]]:
    try:
        with make(number) as action:
            for _ in range(WARM_UP):
                action()
            start.wait()
            return _repeat_action(action, seconds)
    except BaseException:
        start.abort()  # or the other threads would wait for this one
        raise


def _repeat_action(
    action: Callable[[], object], seconds: float
) -> tuple[float, float, list[float]]:
    times: list[float] = []
    began = now = time.monotonic()
    while now < began + seconds:
        action()
        after = time.monotonic()
        times.append(after - now)
        now = after
    return began, now, times


@dataclass(frozen=True, slots=True)
class HttpConnection:
    """One kept-alive connection to a web process."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def exchange(self, request: bytes) -> bytes:
        """Send a request and return the body of its answer. Raises LookupError for an
        answer that is not 2xx."""
        self.writer.write(request)
        head, body = await read_answer(self.reader)
        if not head.startswith(b"HTTP/1.1 2"):
            raise LookupError((head.split(b"\r\n", 1)[0] + b" " + body).decode())
        return body


HttpAction = Callable[[HttpConnection], Awaitable[object]]


def run_http_actions(
    ports: Sequence[int], act: HttpAction, *, connections: int, seconds: float
) -> Run:
    """Repeat an action of several requests on each connection, spread evenly over the
    ports. Raises what the action raises."""
    return asyncio.run(_run_connections(ports, act, connections, seconds))


async def _run_connections(
    ports: Sequence[int], act: HttpAction, connections: int, seconds: float
) -> Run:
    start = asyncio.Event()
    ready = asyncio.Semaphore(0)
    jobs = [
        asyncio.create_task(
            _run_connection(ports[i % len(ports)], act, start, ready, seconds)
        )
        for i in range(connections)
    ]
    for _ in jobs:
        await ready.acquire()
    began = time.monotonic()
    start.set()
    times = [taken for job in jobs for taken in await job]
    return Run(len(times), time.monotonic() - began, times)


async def _run_connection(
    port: int,
    act: HttpAction,
    start: asyncio.Event,
    ready: asyncio.Semaphore,
    seconds: float,
) -> list[float]:
    connection = HttpConnection(*await asyncio.open_connection(LOOPBACK, port))
    try:
        for _ in range(WARM_UP):
            await act(connection)
    finally:
        ready.release()
    await start.wait()
    times: list[float] = []
    began = now = time.monotonic()
    while now < began + seconds:
        await act(connection)
        after = time.monotonic()
        times.append(after - now)
        now = after
    connection.writer.close()
    return times


async def read_answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Read an answer's head and body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
    return head, await reader.readexactly(int(length))


def build_request(
    method: str, path: str, headers: dict[str, str], body: bytes = b""
) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {LOOPBACK}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def build_post(path: str, headers: dict[str, str], body: Any) -> bytes:
    return build_request("POST", path, headers, json.dumps(body).encode())


def exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: Any = None,
) -> Any:
    """Send a request over a kept-alive connection and return its answer's JSON. Raises
    LookupError for a refusal."""
    sent = None if body is None else json.dumps(body)
    connection.request(method, path, sent, dict(headers))
    answer = connection.getresponse()
    text = answer.read()
    if answer.status >= 300:
        raise LookupError(f"{answer.status} {text!r}")
    return json.loads(text)


class ConnectionHolder:
    """Runs coroutines in its thread until it is closed."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start one more coroutine."""
        self.loop.call_soon_threadsafe(
            lambda: self._tasks.append(self.loop.create_task(work()))
        )

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._cancel(), self.loop).result(PATIENCE_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE_S)
        self.loop.close()

    async def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@contextmanager
def hold_connections() -> Iterator[ConnectionHolder]:
    held = ConnectionHolder()
    try:
        yield held
    finally:
        held.close()


@asynccontextmanager
async def open_request(
    port: int, path: str, headers: dict[str, str]
) -> AsyncIterator[asyncio.StreamReader]:
    """Send one GET; the caller reads its answer."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        writer.write(build_request("GET", path, headers))
        yield reader
    finally:
        writer.close()


def wait_until(done: Callable[[], bool], what: str) -> None:
    """Wait, with little delay, until `done`. Raises TimeoutError with `what`."""
    end = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.002)

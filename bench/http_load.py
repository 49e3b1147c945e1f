"""A client that costs little, so that what is timed is the server: sixteen kept-alive
connections on one event loop, requests written by hand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from hitl.environment import LOOPBACK

from .load import WARM_UP, Run

MakeRequest = Callable[[], bytes]


def run_http_clients(
    ports: Sequence[int], make: MakeRequest, *, connections: int, seconds: float
) -> Run:
    """Send what `make` gives as fast as answers come, spread evenly over the ports.

    Raises `LookupError` for an answer that is not 2xx.
    """
    return asyncio.run(_run_connections(ports, make, connections, seconds))


async def _run_connections(
    ports: Sequence[int], make: MakeRequest, connections: int, seconds: float
) -> Run:
    start = asyncio.Event()
    ready = asyncio.Semaphore(0)
    jobs = [
        asyncio.create_task(
            _run_connection(ports[i % len(ports)], make, start, ready, seconds)
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
    make: MakeRequest,
    start: asyncio.Event,
    ready: asyncio.Semaphore,
    seconds: float,
) -> list[float]:
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        for _ in range(WARM_UP):
            await exchange(reader, writer, make())
    finally:
        ready.release()
    await start.wait()
    times: list[float] = []
    began = now = time.monotonic()
    while now < began + seconds:
        await exchange(reader, writer, make())
        after = time.monotonic()
        times.append(after - now)
        now = after
    writer.close()
    return times


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> None:
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
    body = await reader.readexactly(int(length))
    if not head.startswith(b"HTTP/1.1 2"):
        raise LookupError((head.split(b"\r\n", 1)[0] + b" " + body).decode())


def build_request(
    method: str, path: str, headers: dict[str, str], body: bytes = b""
) -> bytes:
    """One request's bytes."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {LOOPBACK}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body

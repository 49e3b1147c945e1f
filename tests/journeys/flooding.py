"""An agent that proposes as often as it is told to, whatever it is answered; a slow
answer makes it late, and no call less. A process
of its own, so that it slows nobody but the gate:

    python -m tests.journeys.flooding <port> <key> <calls a second> <seconds>

prints how often each status was answered, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections import Counter

HOST = "127.0.0.1"
CONNECTIONS = 12
ANSWER_S = 20


async def flood(port: int, key: str, rate: float, seconds: float) -> Counter[str]:
    """Each connection keeps its own part of the beat."""
    answered: Counter[str] = Counter()
    every = CONNECTIONS / rate
    async with asyncio.TaskGroup() as group:
        for number in range(CONNECTIONS):
            late = every * number / CONNECTIONS
            group.create_task(_client(port, key, every, late, seconds, answered))
    return answered


async def _client(
    port: int,
    key: str,
    every: float,
    late: float,
    seconds: float,
    answered: Counter[str],
) -> None:
    loop = asyncio.get_running_loop()
    reader, writer = await asyncio.open_connection(HOST, port)
    next_at = loop.time() + late
    for number in range(int(seconds / every)):
        await asyncio.sleep(max(next_at - loop.time(), 0))
        next_at += every
        writer.write(_proposal(key, f"{late:.4f}-{number}"))
        async with asyncio.timeout(ANSWER_S):
            answered[await _status(reader)] += 1
    writer.close()


def _proposal(key: str, name: str) -> bytes:
    args = {"customer": name, "amount": "4.00", "currency": "USD"}
    said = {"thread": f"flood-{name}", "tool": "pay", "args": args}
    body = json.dumps(said).encode()
    lines = [
        "POST /api/v1/proposals HTTP/1.1",
        f"Host: {HOST}",
        f"Authorization: Bearer {key}",
        f"Idempotency-Key: {uuid.uuid4()}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def _status(reader: asyncio.StreamReader) -> str:
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
    await reader.readexactly(int(length))
    return head.split(b" ", 2)[1].decode()


if __name__ == "__main__":
    port, key, rate, seconds = sys.argv[1:]
    answered = asyncio.run(flood(int(port), key, float(rate), float(seconds)))
    sys.stdout.write(json.dumps(answered))

"""What one key's many calls may take from the others."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from hitl import fairness
from hitl.exchange import Answer, Message, Receive, Scope, Send
from hitl.fairness import Fair
from tests import loops

PROPOSE = "/api/v1/proposals"


@dataclass
class Threads:
    """Answers with this status once it may; counts who is in it and what was told."""

    status: int = 201
    asked: list[Scope] = field(default_factory=list)
    inside: Counter[bytes] = field(default_factory=Counter)
    most: Counter[bytes] = field(default_factory=Counter)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = dict(scope["headers"]).get(b"authorization", b"")
        self.asked.append(scope)
        self.inside[key] += 1
        self.most[key] = max(self.most[key], self.inside[key])
        await self.go.wait()
        self.inside[key] -= 1
        start = {"type": "http.response.start", "status": self.status, "headers": []}
        await send(start)
        await send({"type": "http.response.body", "body": b"{}"})


async def call(
    fair: Fair, key: str, path: str = PROPOSE, method: str = "POST", **headers: str
) -> Answer:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope: Scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(b"authorization", f"Bearer {key}".encode()), *pairs],
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await fair(scope, receive, send)
    return Answer(sent[0]["status"], tuple(sent[0]["headers"]), sent[1]["body"])


async def until(true: Callable[[], bool]) -> None:
    """Let the others go on until it is so; `loops.run` ends what never is."""
    while not true():
        await asyncio.sleep(0)


def told(scope: Scope) -> str:
    headers: dict[bytes, bytes] = dict(scope["headers"])
    return headers.get(fairness.UNASKED, b"").decode()


def test_one_key_leaves_a_thread_to_the_others() -> None:
    async def story() -> None:
        threads = Threads()
        fair = Fair(threads)
        many = [asyncio.create_task(call(fair, "loud")) for _ in range(20)]
        other = asyncio.create_task(call(fair, "quiet"))
        await until(lambda: threads.inside[b"Bearer quiet"] == 1)
        assert threads.inside[b"Bearer loud"] == fairness.AT_ONCE
        threads.go.set()
        answers = await asyncio.gather(other, *many)
        assert {answer.status for answer in answers} == {201}
        assert threads.most[b"Bearer loud"] == fairness.AT_ONCE
        assert not fair._lines

    loops.run(story())


def test_too_many_of_one_key_are_refused_unasked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fairness, "MOST_QUEUED", 5)

    async def story() -> None:
        threads = Threads()
        fair = Fair(threads)
        waiting = [asyncio.create_task(call(fair, "loud")) for _ in range(5)]
        await until(lambda: threads.inside[b"Bearer loud"] == fairness.AT_ONCE)
        refused = await call(fair, "loud")
        assert (refused.status, refused.header(b"retry-after")) == (429, "1")
        assert json.loads(refused.body)["code"] == "too_many"
        threads.go.set()
        assert {answer.status for answer in await asyncio.gather(*waiting)} == {201}

    loops.run(story())


def test_who_was_told_to_wait_is_told_again_without_asking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        threads = Threads(status=429)
        threads.go.set()
        fair = Fair(threads)
        answers = [await call(fair, "loud") for _ in range(4)]
        assert {answer.status for answer in answers} == {429}
        assert len(threads.asked) == 1
        await call(fair, "quiet")
        await call(fair, "loud", f"{PROPOSE}/p-1", "GET")
        assert len(threads.asked) == 3
        fair._told[b"Bearer loud"].until = 0.0
        threads.status = 201
        forged = {fairness.UNASKED.decode(): "9"}
        assert (await call(fair, "loud", **forged)).status == 201
        assert told(threads.asked[-1]) == "3"
        assert (await call(fair, "loud", **forged)).status == 201
        assert told(threads.asked[-1]) == ""
        await call(fair, "loud", f"{PROPOSE}/batch", **forged)
        assert told(threads.asked[-1]) == ""

    loops.run(story())


def test_what_carries_no_agents_key_passes() -> None:
    async def story() -> None:
        threads = Threads()
        fair = Fair(threads)
        many = [
            asyncio.create_task(call(fair, "x", "/queue/", "GET")) for _ in range(9)
        ]
        await until(lambda: threads.inside[b"Bearer x"] == 9)
        threads.go.set()
        await asyncio.gather(*many)

    loops.run(story())

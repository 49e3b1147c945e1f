"""What one caller's many calls may take from the others', and what strangers may."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from pytest_django import Settings

from hitl.live import anonymous_limit, per_key_limit
from hitl.live.anonymous_limit import AnonymousLimits
from hitl.live.buffering import BufferedResponse, Message, Receive, Scope, Send
from hitl.live.callers import NOBODY, CallerMiddleware, KnownCallers
from hitl.live.per_key_limit import CallerLimit
from hitl.live.shared_counts import OwnCounts
from tests import loops

PROPOSE, SIGN_IN = "/api/v1/proposals", "/sign-in/"


@dataclass
class Threads:
    """Answers with this status once it may; counts who is in it and what was told. It
    lets in whose key is `loud` or `quiet`, in whatever spelling of the header."""

    status: int = 201
    asked: list[Scope] = field(default_factory=list)
    inside: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = who(dict(scope["headers"]).get(b"authorization", b""))
        self.asked.append(scope)
        self.inside[caller] += 1
        self.most[caller] = max(self.most[caller], self.inside[caller])
        await self.go.wait()
        self.inside[caller] -= 1
        said = caller if self.status < 500 else NOBODY  # nobody could be let in
        headers = [(b"counterseal-caller", said.encode())]
        start = {"type": "http.response.start", "status": self.status}
        await send({**start, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}"})


def who(given: bytes) -> str:
    key = given.split()[-1].decode() if given else ""
    return f"agent:{key}" if key in {"loud", "quiet"} else NOBODY


@dataclass
class Door:
    """The product's middleware around such threads."""

    threads: Threads = field(default_factory=Threads)
    callers: KnownCallers = field(default_factory=KnownCallers)
    strangers: AnonymousLimits = field(
        default_factory=lambda: AnonymousLimits(OwnCounts())
    )
    fair: CallerLimit = field(init=False)

    def __post_init__(self) -> None:
        inner = CallerMiddleware(self.threads, self.callers)
        self.fair = CallerLimit(inner, self.callers, self.strangers)

    async def know(self, *keys: str) -> None:
        """Those who called before."""
        for key in keys:
            scope = made(key, f"{PROPOSE}/p-1", "GET")
            self.callers.learn(scope, who(key.encode()))

    async def call(
        self,
        key: str,
        path: str = PROPOSE,
        method: str = "POST",
        client: str = "10.0.0.1",
        **headers: str,
    ) -> BufferedResponse:
        scope = made(key, path, method, client, **headers)
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        await self.fair(scope, receive, send)
        return BufferedResponse(
            sent[0]["status"], tuple(sent[0]["headers"]), sent[1]["body"]
        )


def made(
    key: str, path: str, method: str, client: str = "10.0.0.1", **headers: str
) -> Scope:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    given = key if " " in key else f"Bearer {key}"
    return {
        "type": "http",
        "method": method,
        "path": path,
        "client": (client, 1234),
        "headers": [(b"authorization", given.encode()), *pairs] if key else pairs,
    }


async def until(true: Callable[[], bool]) -> None:
    """Let the others go on until it is so; `loops.run` ends what never is."""
    while not true():
        await asyncio.sleep(0)


def told(scope: Scope) -> str:
    headers: dict[bytes, bytes] = dict(scope["headers"])
    return headers.get(per_key_limit.REFUSALS_HEADER, b"").decode()


SPELLINGS = ["Bearer loud", "bearer loud", "BEARER loud", "bEARER loud", "Bearer  loud"]


@pytest.mark.parametrize("spellings", [SPELLINGS[:1], SPELLINGS])
def test_one_caller_leaves_a_thread_to_the_others(spellings: list[str]) -> None:
    async def story() -> None:
        door = Door()
        await door.know("quiet", *spellings)
        many = [
            asyncio.create_task(door.call(spellings[n % len(spellings)]))
            for n in range(20)
        ]
        other = asyncio.create_task(door.call("quiet"))
        threads = door.threads
        await until(lambda: threads.inside["agent:quiet"] == 1)
        assert threads.inside["agent:loud"] == per_key_limit.AT_ONCE
        threads.go.set()
        answers = await asyncio.gather(other, *many)
        assert {answer.status for answer in answers} == {201}
        assert threads.most["agent:loud"] == per_key_limit.AT_ONCE
        assert not door.fair._turns._queues

    loops.run(story())


def test_too_many_of_one_caller_are_refused_unasked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(per_key_limit, "MOST_QUEUED", 5)

    async def story() -> None:
        door = Door()
        await door.know("loud")
        waiting = [asyncio.create_task(door.call("loud")) for _ in range(5)]
        await until(lambda: door.threads.inside["agent:loud"] == per_key_limit.AT_ONCE)
        refused = await door.call("loud")
        assert (refused.status, refused.header(b"retry-after")) == (429, "1")
        assert json.loads(refused.body)["code"] == "too_many"
        door.threads.go.set()
        assert {answer.status for answer in await asyncio.gather(*waiting)} == {201}

    loops.run(story())


def test_who_was_told_to_wait_is_told_again_without_asking() -> None:
    async def story() -> None:
        door = Door(Threads(status=429))
        threads = door.threads
        threads.go.set()
        await door.know("loud", "quiet", "bearer loud")
        keys = ["loud", "bearer loud"] * 2
        answers = [await door.call(key) for key in keys]
        assert {answer.status for answer in answers} == {429}
        assert len(threads.asked) == 1
        await door.call("quiet")
        await door.call("loud", f"{PROPOSE}/p-1", "GET")
        assert len(threads.asked) == 3
        door.fair._told["agent:loud"].until = 0.0
        threads.status = 201
        forged = {per_key_limit.REFUSALS_HEADER.decode(): "9"}
        assert (await door.call("loud", **forged)).status == 201
        assert told(threads.asked[-1]) == "3"
        assert (await door.call("loud", **forged)).status == 201
        assert told(threads.asked[-1]) == ""
        await door.call("loud", f"{PROPOSE}/batch", **forged)
        assert told(threads.asked[-1]) == ""
        await door.call("unknown", "/queue/", **forged)
        assert told(threads.asked[-1]) == ""

    loops.run(story())


def test_the_pages_of_a_known_person_pass(settings: Settings) -> None:
    async def story() -> None:
        door = Door()
        session = {"cookie": f"{settings.SESSION_COOKIE_NAME}=s1"}
        door.callers.learn(made("", "/queue/", "GET", **session), "person:u-1")
        many = [
            asyncio.create_task(door.call("", "/queue/", "GET", **session))
            for _ in range(9)
        ]
        await until(lambda: door.threads.inside[NOBODY] == 9)
        door.threads.go.set()
        await asyncio.gather(*many)

    loops.run(story())


def test_strangers_have_a_small_share_and_take_turns_by_address() -> None:
    async def story() -> None:
        door = Door()
        await door.know("quiet")
        loud = [
            asyncio.create_task(door.call(f"made-up-{n}", client="10.0.0.1"))
            for n in range(20)
        ]
        await until(lambda: door.threads.inside[NOBODY] == anonymous_limit.AT_ONCE)
        other = asyncio.create_task(door.call("", SIGN_IN, client="10.0.0.2"))
        known = asyncio.create_task(door.call("quiet"))
        await until(lambda: door.threads.inside["agent:quiet"] == 1)
        probes = [
            asyncio.create_task(door.call("", path, "GET", client=f"10.0.1.{n}"))
            for n, path in enumerate(["/livez", "/readyz"])
        ]
        await until(lambda: door.threads.inside[NOBODY] == anonymous_limit.AT_ONCE + 2)
        door.threads.go.set()
        await other
        assert sum(task.done() for task in loud) <= 2, "the other one's turn is next"
        await asyncio.gather(known, *loud, *probes)
        assert door.threads.most[NOBODY] == anonymous_limit.AT_ONCE + 2

    loops.run(story())


def test_who_is_let_in_while_it_waits_stands_no_longer_with_strangers() -> None:
    async def story() -> None:
        door = Door()
        door.threads.go.set()
        answers = await asyncio.gather(*(door.call("loud") for _ in range(50)))
        assert {answer.status for answer in answers} == {201}
        assert door.threads.most["agent:loud"] <= per_key_limit.AT_ONCE
        assert all(name != b"counterseal-caller" for name, _ in answers[0].headers)

    loops.run(story())


def test_an_address_has_only_so_many_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anonymous_limit, "MOST_WAITING", 5)

    async def story() -> None:
        door = Door()
        waiting = [asyncio.create_task(door.call("x", client="fd00::1"))]
        await until(lambda: door.threads.inside[NOBODY] == 1)
        waiting += [
            asyncio.create_task(door.call("x", client=f"fd00::{n}"))
            for n in range(2, 6)
        ]
        await asyncio.sleep(0)
        refused = await door.call("x", client="fd00::9")
        assert refused.status == 429
        assert json.loads(refused.body)["code"] == "too_many"
        door.threads.go.set()
        answers = await asyncio.gather(*waiting)
        assert {answer.status for answer in answers} == {201}

    loops.run(story())


def test_an_address_fails_only_so_often(settings: Settings) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"failures_per_minute": 3}
    )

    async def story() -> None:
        door = Door()
        door.threads.go.set()
        names = [f"key-{n}" for n in range(5)]
        said = [(await door.call(name)).status for name in names]
        assert said == [201, 201, 201, 429, 429]
        assert len(door.threads.asked) == 3
        assert (await door.call("", SIGN_IN, "GET")).status == 201, "who only looks"
        assert (await door.call("x", client="10.0.0.2")).status == 201
        await door.know("loud")
        assert (await door.call("loud")).status == 201, "who is known already"

    loops.run(story())


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("path", [PROPOSE, "/access/v1/evaluation", "/metrics"])
def test_a_wrong_key_counts_by_every_method(
    settings: Settings, path: str, method: str
) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"failures_per_minute": 2}
    )

    async def story() -> None:
        door = Door()
        door.threads.go.set()
        door.threads.status = 401
        said = [(await door.call(f"key-{n}", path, method)).status for n in range(3)]
        assert said == [401, 401, 429]
        for probe in ("/livez", "/readyz", "/metrics"):
            assert (await door.call("", probe, "GET")).status == 401, "it has no key"

    loops.run(story())


def test_an_outage_is_nobodys_failure_and_nobody_is_forgotten(
    settings: Settings,
) -> None:
    """Else all who call from one address were told to wait when it is over."""
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"failures_per_minute": 1}
    )

    async def story() -> None:
        door = Door()
        door.threads.go.set()
        await door.know("loud")
        door.threads.status = 503
        names = ("x", "y", "quiet", "loud")
        assert {(await door.call(name)).status for name in names} == {503}
        assert door.callers.of(made("loud", PROPOSE, "POST")) == "agent:loud"
        door.threads.status = 201
        assert (await door.call("quiet")).status == 201

    loops.run(story())


def test_whoever_is_let_in_did_not_fail(settings: Settings) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"failures_per_minute": 1}
    )

    async def story() -> None:
        door = Door()
        door.threads.go.set()
        for key in ("loud", "quiet", "x"):
            assert (await door.call(key)).status == 201
        assert (await door.call("x")).status == 429

    loops.run(story())

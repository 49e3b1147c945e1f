"""Long-polling around a small application that answers at once, like ours does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from hitl.live import long_poll
from hitl.live.buffering import BodyMemory, Message, Receive, Scope, Send
from hitl.live.callers import CallerMiddleware, KnownCallers
from hitl.live.listen import Hub
from hitl.live.long_poll import LongPoll, parse_wait_seconds
from hitl.live.shared_counts import OwnCounts
from tests import loops

KEY = (b"authorization", b"Bearer key")


def whose(key: bytes) -> str:
    """A key means the same in every spelling of what stands before it."""
    return f"agent:{key.split()[-1].decode()}"


@dataclass
class Gate:
    """Says "pending" until it is settled; counts who asked what."""

    status: str = "pending"
    refuse: int = 0
    nobody: bool = False
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)
    on_ask: Callable[[], None] = lambda: None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = dict(scope["headers"]).get(b"authorization", b"")
        self.asked.append((scope["method"], scope["path"], key))
        status = 201 if scope["method"] == "POST" else self.refuse or 200
        body = json.dumps({"status": self.status}).encode()
        headers = [(b"content-length", b"%d" % len(body)), (b"etag", b"first")]
        caller = "nobody" if self.nobody else whose(key)
        headers.append((b"counterseal-caller", caller.encode()))
        if self.status == "pending":
            headers.append((b"counterseal-wait", b"p-1"))
        self.on_ask()
        start = {"type": "http.response.start", "status": status, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": body})


@dataclass
class Client:
    """One request to the gate through the long-poll, in this event loop."""

    hub: Hub
    gate: Gate
    sent: list[Message] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    poll: LongPoll | None = None
    key: bytes = KEY[1]

    async def ask(self, path: str, query: str, method: str = "GET") -> None:
        """Until the answer came. A question that waits for a minute although it should
        not runs into the limit of `loops.run`."""
        scope = self.scope(path, query, method)
        first = iter([{"type": "http.request", "body": b"{}", "more_body": False}])

        async def receive() -> Message:
            for message in first:
                return message
            await self.gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            self.sent.append(message)

        poll = self.poll or LongPoll(
            self.gate, self.hub, KnownCallers(), BodyMemory(), OwnCounts()
        )
        self.sent.clear()
        await poll(scope, receive, send)

    def scope(self, path: str, query: str, method: str) -> Scope:
        return {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(KEY[0], self.key), (b"x_real_ip", b"forged")],
        }

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    @property
    def body(self) -> Any:
        return json.loads(b"".join(m.get("body", b"") for m in self.sent))


Story = Callable[[Client], Coroutine[Any, Any, None]]


def play(story: Story) -> None:
    """The hub here is not connected: news is put in by hand (test_listen.py has
    the real one)."""

    async def run() -> None:
        await story(Client(Hub(""), Gate()))

    loops.run(run())


def soon(client: Client, act: Callable[[], None], after: float = 0.1) -> None:
    asyncio.get_running_loop().call_later(after, act)


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.002)


async def turns() -> None:
    """Let what is ready in this event loop run."""
    for _ in range(20):
        await asyncio.sleep(0)


def settle(client: Client, status: str = "executed") -> None:
    client.gate.status = status
    client.hub._tell("p-1")


def test_without_wait_the_answer_is_immediate_and_the_header_stays_inside() -> None:
    async def story(client: Client) -> None:
        await client.ask("/api/v1/proposals/p-1", "")
        assert client.body == {"status": "pending"}
        assert b"counterseal-wait" not in client.headers

    play(story)


def test_a_final_answer_does_not_wait() -> None:
    async def story(client: Client) -> None:
        client.gate.status = "executed"
        await client.ask("/api/v1/proposals/p-1", "wait=60")
        assert len(client.gate.asked) == 1

    play(story)


def test_news_ends_the_wait_with_the_newest_body() -> None:
    async def story(client: Client) -> None:
        soon(client, lambda: settle(client))
        await client.ask("/api/v1/proposals/p-1", "wait=60")
        assert client.body == {"status": "executed"}
        assert client.headers[b"content-length"] == b"22"

    play(story)


def test_a_created_proposal_stays_created() -> None:
    async def story(client: Client) -> None:
        soon(client, lambda: settle(client))
        await client.ask("/api/v1/proposals", "wait=5", "POST")
        assert client.status == 201
        assert client.headers[b"etag"] == b"first"
        assert client.body == {"status": "executed"}
        assert client.gate.asked == [
            ("POST", "/api/v1/proposals", b"Bearer key"),
            ("GET", "/api/v1/proposals/p-1", b"Bearer key"),
        ]

    play(story)


def test_news_while_asking_is_not_lost() -> None:
    async def story(client: Client) -> None:
        def decided_just_after_it_was_read() -> None:
            client.gate.on_ask = lambda: None
            settle(client)

        client.gate.on_ask = decided_just_after_it_was_read
        await client.ask("/api/v1/proposals", "wait=60", "POST")
        assert client.body == {"status": "executed"}

    play(story)


def test_news_that_changes_nothing_goes_on_waiting() -> None:
    async def story(client: Client) -> None:
        asking = asyncio.create_task(client.ask("/api/v1/proposals/p-1", "wait=60"))
        await until(lambda: len(client.gate.asked) == 1)
        client.hub._tell("p-1")
        await until(lambda: len(client.gate.asked) == 2)
        client.hub._tell("p-2")
        await turns()
        assert not asking.done()
        assert len(client.gate.asked) == 2
        settle(client)
        await asking
        assert client.body == {"status": "executed"}


def test_a_wait_ends_with_what_stands() -> None:
    async def story(client: Client) -> None:
        await client.ask("/api/v1/proposals/p-1", "wait=1")
        assert client.body == {"status": "pending"}

    play(story)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_key_that_is_refused_meanwhile_hears_no_outcome(
    method: str, status: int
) -> None:
    async def story(client: Client) -> None:
        def revoke() -> None:
            client.gate.refuse = status
            settle(client)

        soon(client, revoke)
        path = "/api/v1/proposals" + ("/p-1" if method == "GET" else "")
        await client.ask(path, "wait=60", method)
        assert client.status == 401
        assert client.body["code"] == "bad_key"
        assert "executed" not in str(client.body)

    play(story)


def test_a_failure_while_waiting_leaves_the_last_good_answer() -> None:
    async def story(client: Client) -> None:
        def fail() -> None:
            client.gate.refuse = 503
            settle(client)

        soon(client, fail)
        await client.ask("/api/v1/proposals/p-1", "wait=60")
        assert client.status == 200
        assert client.body == {"status": "pending"}

    play(story)


def test_a_change_of_the_callers_access_asks_again_once_for_all_its_waits() -> None:
    async def story(client: Client) -> None:
        gate, callers = client.gate, KnownCallers()
        door = CallerMiddleware(gate, callers)
        poll = LongPoll(door, client.hub, callers, BodyMemory(), OwnCounts())
        waiting = [Client(client.hub, gate, poll=poll) for _ in range(100)]
        other = Client(client.hub, gate, poll=poll, key=b"Bearer other")
        path = "/api/v1/proposals/p-1"
        asking = [
            asyncio.create_task(one.ask(path, "wait=60")) for one in [*waiting, other]
        ]
        await until(lambda: len(gate.asked) == 101)
        await turns()
        client.hub._tell("agent:somebody")
        await turns()
        assert len(gate.asked) == 101, "the access of others costs nothing"
        gate.refuse, gate.nobody = 401, True
        client.hub._tell("agent:key")
        await asyncio.gather(*asking[:-1])
        assert {one.status for one in waiting} == {401}
        assert not asking[-1].done()
        client.hub.end_waits()
        await asking[-1]
        assert other.status == 200

    play(story)


def test_a_client_that_hangs_up_ends_the_wait() -> None:
    async def story(client: Client) -> None:
        soon(client, client.gone.set)
        await client.ask("/api/v1/proposals/p-1", "wait=60")
        assert client.sent == []
        assert client.hub._subscriptions == set()

    play(story)


def test_a_stopping_process_answers_at_once() -> None:
    async def story(client: Client) -> None:
        soon(client, client.hub.end_waits)
        await client.ask("/api/v1/proposals/p-1", "wait=60")
        assert client.body == {"status": "pending"}

    play(story)


def test_headers_that_wsgi_would_confuse_are_dropped() -> None:
    async def story(client: Client) -> None:
        seen: list[bytes] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            seen.extend(name for name, _ in scope["headers"])
            await Gate("executed")(scope, receive, send)

        client.gate = app  # type: ignore[assignment]
        await client.ask("/queue/", "")
        assert seen == [b"authorization"]

    play(story)


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("", 0),
        ("wait=0", 0),
        ("wait=1", 1),
        ("status=x&wait=60", 60),
        ("wait=61", 0),
        ("wait=-1", 0),
        ("wait=1.5", 0),
        ("wait=abc", 0),
        ("wait=", 0),
        ("wait=1&wait=2", 0),
        ("wait=%D9%A1", 0),
        ("wait=000000000000000000000000000001", 0),
    ],
)
def test_what_is_not_a_time_is_left_to_the_view(query: str, seconds: int) -> None:
    scope: Scope = {
        "path": "/api/v1/proposals",
        "method": "POST",
        "query_string": query.encode(),
    }
    assert parse_wait_seconds(scope) == seconds


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/queue/"), ("DELETE", "/api/v1/proposals/p-1")]
)
def test_only_questions_to_the_api_wait(method: str, path: str) -> None:
    scope: Scope = {"path": path, "method": method, "query_string": b"wait=5"}
    assert parse_wait_seconds(scope) == 0


def all_asked(gate: Gate, number: int) -> bool:
    return len(gate.asked) == number


@pytest.fixture
def two_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_poll, "MAX_EACH", 2)


def crowd(first: Client, *keys: bytes, known: bool) -> list[Client]:
    """Clients of one long-poll, which knows their keys or does not yet."""
    callers = KnownCallers()
    poll = LongPoll(
        CallerMiddleware(first.gate, callers),
        first.hub,
        callers,
        BodyMemory(),
        OwnCounts(),
    )
    found = [Client(first.hub, first.gate, poll=poll, key=key) for key in keys]
    for client in found if known else []:
        callers.learn(client.scope("/api/v1/proposals", "", "POST"), whose(client.key))
    return found


@pytest.mark.usefixtures("two_waits")
def test_one_caller_has_only_so_many_waits_in_whatever_spelling() -> None:
    async def story(first: Client) -> None:
        keys = [b"Bearer key", b"bearer key", b"BEARER key", b"Bearer other"]
        clients = crowd(first, *keys, known=True)
        asking = [
            asyncio.create_task(c.ask("/api/v1/proposals", "wait=60", "POST"))
            for c in clients
        ]
        refused = clients[2]
        await until(lambda: asking[2].done() and len(first.gate.asked) == 3)
        assert [task.done() for task in asking] == [False, False, True, False]
        assert (refused.status, refused.body["code"]) == (429, "too_many")
        assert int(refused.headers[b"retry-after"]) > 0
        assert len(first.gate.asked) == 3, "nothing was asked for who may not wait"
        await refused.ask("/api/v1/proposals/p-1", "")
        settle(first)
        await asyncio.gather(*asking)
        assert clients[0].body == {"status": "executed"}
        await clients[2].ask("/api/v1/proposals/p-1", "wait=5")
        assert clients[2].status == 200, "who has gone makes room"
        assert clients[0].poll is not None
        assert not clients[0].poll.counts._ends

    play(story)


@pytest.mark.usefixtures("two_waits")
def test_who_becomes_known_by_the_answer_waits_as_that_caller() -> None:
    async def story(first: Client) -> None:
        keys = [b"Bearer key", b"bearer key", b"BEARER key", b"Bearer other"]
        clients = crowd(first, *keys, known=False)
        asking = []
        for number, client in enumerate(clients, start=1):
            asked = client.ask("/api/v1/proposals", "wait=60", "POST")
            asking.append(asyncio.create_task(asked))
            await until(partial(all_asked, first.gate, number))
        await until(asking[2].done)
        assert [task.done() for task in asking] == [False, False, True, False]
        assert (clients[2].status, clients[2].body) == (201, {"status": "pending"})
        assert b"counterseal-caller" not in clients[2].headers
        settle(first)
        await asyncio.gather(*asking)
        assert clients[0].poll is not None
        assert not clients[0].poll.counts._ends

    play(story)

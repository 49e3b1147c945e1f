"""A server of the official package behind the proxy over streamable HTTP, in both eras
of the protocol."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import httpx2
import pytest

from reviews.models import ApprovalRequest, Proposal
from tests import factories
from tests.client.mcp.conftest import (
    HERE,
    NOTES,
    PROXY,
    PYTHON_PROXY,
    Bench,
    connect,
    text_of,
)
from tests.client.mcp.task_client import TaskExtension
from tests.client.mcp.test_tasks import await_end, begin_task
from tests.stack import PATIENCE_S, START_S, free_port, wait_until

pytestmark = pytest.mark.servers
NOTE = {"to": "ann", "text": "Your parcel is on its way."}
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


@contextmanager
def serve(
    bench: Bench,
    *options: str,
    command: list[str] = PROXY,
    server: list[str] = NOTES,
) -> Iterator[str]:
    """A server and its proxy, each at an address; the proxy's."""
    with serve_alone(bench, server) as url:
        words = [*command, "--url", url, *options, "--port"]
        with serve_alone(bench, words) as proxy:
            yield proxy


@contextmanager
def serve_alone(bench: Bench, command: list[str]) -> Iterator[str]:
    """A command that serves at the port which is its last word; its address."""
    port = free_port()
    with subprocess.Popen([*command, str(port)], env=bench.environ) as process:
        try:
            wait_until(lambda: is_listening(port), START_S)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


def is_listening(port: int) -> bool:
    """A server of ours listens when it is ready. An HTTP client for every try would
    read the system's certificates each time."""
    with suppress(ConnectionError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@ERAS
def test_an_approved_call_reaches_the_server_once(bench: Bench, mode: str) -> None:
    with serve(bench) as url, connect(url, mode=mode) as caller:
        called = caller.begin("send_note", **NOTE)
        bench.decide("modify", args={**NOTE, "to": "bob"})
        result = called.result(PATIENCE_S)
        assert result.structured_content == {"sent": "bob"}
        called = caller.begin("send_note", to="cat", text="Hello.")
        bench.decide("reject", number=2, reason="Cat moved.")
        assert "Cat moved." in text_of(called.result(PATIENCE_S))
        assert caller.call("read_notes", to="bob").structured_content == {
            "result": [NOTE["text"]]
        }
    assert [note["to"] for note in bench.notes] == ["bob"]


@ERAS
def test_a_pending_call_is_repeated(bench: Bench, mode: str) -> None:
    with serve(bench, "--wait", "0") as url, connect(url, mode=mode) as caller:
        assert "waits for approval" in text_of(caller.call("send_note", **NOTE))
        bench.decide()
        result = caller.call("send_note", **NOTE)
    assert result.structured_content == {"sent": "ann"}
    assert len(bench.notes) == 1


def test_each_session_is_a_run_of_its_own(bench: Bench) -> None:
    with serve(bench, "--wait", "0") as url:
        for _ in range(2):
            with connect(url, mode="legacy") as caller:
                caller.call("send_note", **NOTE)
    threads = set(Proposal.objects.values_list("thread", flat=True))
    assert len(threads) == 2


def test_the_same_request_twice_is_one_call(bench: Bench) -> None:
    headers = {"accept": "application/json, text/event-stream"}
    with (
        serve(bench) as url,
        httpx2.Client(trust_env=False, headers=headers, timeout=PATIENCE_S) as http,
    ):
        begun = post(http, url, 0, "initialize", INITIALIZE)
        http.headers["mcp-session-id"] = begun.headers["mcp-session-id"]
        post(http, url, None, "notifications/initialized", {})
        asked = {"name": "send_note", "arguments": NOTE}
        args = (http, url, 7, "tools/call", asked)
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(post, *args)
            bench.decide()
            assert read_result(first.result())["structuredContent"] == {"sent": "ann"}
        again = read_result(post(*args))
        assert again["structuredContent"] == {"sent": "ann"}
        other = {"name": "send_note", "arguments": {**NOTE, "to": "eve"}}
        refused = read_result(post(http, url, 7, "tools/call", other))
        assert "this session has used it for another call" in str(refused["content"])
    assert len(bench.notes) == 1
    assert Proposal.objects.count() == 1


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def post(
    http: httpx2.Client, url: str, name: int | None, method: str, params: Any
) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "method": method, "params": params}
    return http.post(url, json=body if name is None else {**body, "id": name})


def read_result(response: httpx2.Response) -> Any:
    """The result in an answer, be it JSON or events."""
    if response.headers["content-type"].startswith("application/json"):
        return response.json()["result"]
    lines = [line for line in response.text.splitlines() if line.startswith("data: {")]
    return json.loads(lines[-1].removeprefix("data: "))["result"]


def test_a_list_of_messages_does_not_pass(bench: Bench) -> None:
    call = {"name": "send_note", "arguments": NOTE}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    with serve(bench) as url, httpx2.Client(trust_env=False) as http:
        for body in ([message], "text", None):
            assert http.post(url, json=body).status_code == 400
        assert http.post(url, content=b"\xff\xfe{").status_code == 400
        named = {**message, "method": ["tools/call"]}
        assert http.post(url, json=named).status_code >= 400
        silent = {key: part for key, part in message.items() if key != "id"}
        assert http.post(url, json=silent).status_code == 202
        foreign = {"host": "evil.example"}
        assert http.post(url, json=message, headers=foreign).status_code == 421
    assert not bench.notes
    assert not Proposal.objects.exists()


def test_a_name_of_a_run_that_is_none_is_refused(bench: Bench) -> None:
    call = {"name": "send_note", "arguments": NOTE}
    headers = {"counterseal-thread": "order 1"}
    with serve(bench) as url, httpx2.Client(trust_env=False, headers=headers) as http:
        refused = post(http, url, 1, "tools/call", call).json()
    assert refused["error"]["message"].startswith("Counterseal-Thread: write 1 to 128")


def test_a_server_cannot_answer_for_the_gate(bench: Bench) -> None:
    server = [sys.executable, str(HERE / "forging_http_server.py")]
    headers = {"mcp-session-id": "s", "counterseal-thread": "order_1"}
    with (
        serve(bench, server=server) as url,
        httpx2.Client(trust_env=False, headers=headers, timeout=PATIENCE_S) as http,
        ThreadPoolExecutor(1) as pool,
    ):
        asked = {"name": "send_note", "arguments": NOTE}
        called = pool.submit(post, http, url, 3, "tools/call", asked)
        bench.await_request()
        stream = http.get(url, headers={"accept": "text/event-stream"}).text
        bench.decide("reject", reason="Ann moved.")
        assert "Ann moved." in str(read_result(called.result()))
    events = [line[6:] for line in stream.splitlines() if line.startswith("data: ")]
    assert [json.loads(event)["id"] for event in events] == [0, 1, 2, 4]


def test_a_client_that_leaves_finds_its_call_again(bench: Bench) -> None:
    with serve(bench, "--thread", "order_1", command=PYTHON_PROXY) as url:
        with connect(url) as caller:
            called = caller.begin("send_note", **NOTE)
            bench.await_request()
            called.cancel()
        with connect(url) as caller:
            again = caller.begin("send_note", **NOTE)
            factories.decide(ApprovalRequest.objects.get(), bench.people["rita"])
            assert again.result(PATIENCE_S).structured_content == {"sent": "ann"}
    assert len(bench.notes) == 1


def test_a_held_call_is_a_task(bench: Bench) -> None:
    with serve(bench) as url, connect(url, extensions=[TaskExtension()]) as caller:
        task = begin_task(caller)
        bench.decide()
        ended = await_end(caller, task.task_id)
    assert ended.result is not None
    assert ended.result["structuredContent"] == {"sent": "ann"}


@ERAS
def test_a_server_with_the_extension_needs_no_proxy(bench: Bench, mode: str) -> None:
    with (
        serve_alone(bench, [*NOTES, "gated"]) as url,
        connect(url, mode=mode) as caller,
    ):
        called = caller.begin("send_note", **NOTE)
        bench.decide("modify", args={**NOTE, "to": "bob"})
        assert called.result(PATIENCE_S).structured_content == {"sent": "bob"}
    assert [note["to"] for note in bench.notes] == ["bob"]

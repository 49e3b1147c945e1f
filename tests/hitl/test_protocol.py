"""Clients that send half a request, over real sockets to the real web process."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import httpx2
import pytest

from hitl.environment import LOOPBACK
from tests.stack import Stack

pytestmark = pytest.mark.servers

HALF = b"POST /api/v1/proposals HTTP/1.1\r\nHost: gate\r\n"
WHOLE = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
SLOW_BODY = HALF + b"Content-Length: 100\r\n\r\n{"
MANY = 50


@pytest.fixture(scope="module")
def impatient(_stack: Stack) -> Iterator[Stack]:
    """A web process that waits one second for a head, and one for a body."""
    own = Stack(_stack.state, {"HEAD_TIMEOUT": "1", "BODY_TIMEOUT": "1"})
    yield own
    own.kill_web()


@pytest.fixture
def port(impatient: Stack, live: Stack) -> int:
    impatient.start_web()
    return impatient.port


def answers(port: int) -> bool:
    try:
        return httpx2.get(f"http://{LOOPBACK}:{port}/livez", trust_env=False).is_success
    except httpx2.TransportError:
        return False


def connect(port: int, sent: bytes) -> socket.socket:
    client = socket.create_connection((LOOPBACK, port), timeout=30)
    client.sendall(sent)
    return client


def rest(client: socket.socket) -> bytes:
    """All that still comes until the server hangs up."""
    with client:
        return b"".join(iter(lambda: client.recv(65536), b""))


def test_half_sent_heads_end_and_others_are_served_meanwhile(port: int) -> None:
    clients = [connect(port, HALF) for _ in range(MANY)]
    assert answers(port)
    for client in clients:
        assert rest(client).startswith(b"HTTP/1.1 408 ")


def test_who_says_nothing_is_hung_up_on(port: int) -> None:
    assert rest(connect(port, b"")) == b""


def test_a_head_that_drips_gets_no_more_time(port: int) -> None:
    with connect(port, HALF) as client, pytest.raises(OSError, match=r"reset|pipe"):
        drip(client)


def drip(client: socket.socket) -> None:
    """One more header, again and again, until nobody takes it any more."""
    while True:
        client.sendall(b"X-Drip: 1\r\n")
        time.sleep(0.05)


@pytest.mark.parametrize("second", [HALF, b"\r\n"])
def test_the_next_request_of_a_connection_has_no_more_time(
    port: int, second: bytes
) -> None:
    client = connect(port, WHOLE)
    assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
    client.sendall(second)
    assert b"408 Request Timeout" in rest(client)


def test_a_body_that_stops_coming_is_refused_and_hung_up_on(port: int) -> None:
    said = rest(connect(port, SLOW_BODY))
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b"too_slow" in said


def test_a_connection_may_last_longer_than_a_head(port: int) -> None:
    began, used = time.monotonic(), set()
    with httpx2.Client(trust_env=False) as client:
        while time.monotonic() < began + 1.5:
            answer = client.get(f"http://{LOOPBACK}:{port}/livez")
            stream = answer.extensions["network_stream"]
            used.add(stream.get_extra_info("client_addr"))
    assert len(used) == 1

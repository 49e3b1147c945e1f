"""Clients that send half a request, over real sockets to the real web process."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

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


def resident_kb(stack: Stack) -> int:
    """The memory that the web process has now."""
    assert stack.web is not None
    status = Path(f"/proc/{stack.web.pid}/status").read_text()
    (line,) = (one for one in status.splitlines() if one.startswith("VmRSS:"))
    return int(line.split()[1])


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


CHUNKED = (
    b"POST /api/v1/proposals HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)
ENDLESS = b"a" * 60_000


def answer_to(port: int, sent: Iterable[bytes]) -> bytes:
    """Send until the server hangs up; all that it answered."""
    with socket.create_connection((LOOPBACK, port), timeout=30) as client:
        with suppress(OSError):
            for piece in sent:
                client.sendall(piece)
        with suppress(ConnectionResetError):
            return b"".join(iter(lambda: client.recv(65536), b""))
    return b""


@pytest.mark.parametrize(
    "head",
    [
        WHOLE[:-2] + b"".join(b"X-%d: 1\r\n" % number for number in range(110)),
        WHOLE[:-2] + b"X-One: " + b"a" * 70_000 + b"\r\n",
        WHOLE[:-2] + b"".join(b"X-%d: %s\r\n" % (n, b"a" * 900) for n in range(80)),
        b"GET /livez?" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    ],
    ids=["lines", "one header", "together", "request line"],
)
def test_a_head_that_is_too_large_is_refused_even_if_it_ends(
    port: int, head: bytes
) -> None:
    said = answer_to(port, [head, b"\r\n"])
    assert said.startswith(b"HTTP/1.1 431 ")
    assert said.count(b"HTTP/1.1 ") == 1


def test_a_head_just_under_the_limits_is_served(port: int) -> None:
    lines = b"".join(b"X-%d: %s\r\n" % (n, b"a" * 600) for n in range(98))
    said = rest(connect(port, WHOLE[:-2] + lines + b"Connection: close\r\n\r\n"))
    assert said.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "begin",
    [
        WHOLE[:-2] + b"X-Endless: ",
        b"GET /livez?",
        CHUNKED + b"1\r\n{\r\n0\r\nX-Trailer: ",
        CHUNKED + b"1;x=",
        WHOLE + WHOLE[:-2] + b"X-Second: ",
    ],
    ids=["header", "request line", "trailer", "chunk extension", "second request"],
)
def test_what_never_ends_is_cut_off_and_not_kept(
    impatient: Stack, port: int, begin: bytes
) -> None:
    before = resident_kb(impatient)

    def endless() -> Iterator[bytes]:
        yield begin
        for _ in range(1000):
            yield ENDLESS

    sent = answer_to(port, endless())
    assert b"HTTP/1.1 431 " in sent or b"HTTP/1.1 2" not in sent
    assert answers(port)
    assert resident_kb(impatient) < before + 10_000


def test_many_trailers_end_the_connection(port: int) -> None:
    trailers = b"".join(b"X-%d: 1\r\n" % number for number in range(5000))
    said = answer_to(port, [CHUNKED, b"1\r\n{\r\n0\r\n", trailers, b"\r\n"])
    assert b"HTTP/1.1 2" not in said


def test_a_chunked_body_of_small_pieces_is_served(port: int) -> None:
    body = b"1\r\n{\r\n" * 40_000 + b"0\r\n\r\n"
    assert rest(connect(port, CHUNKED[:-2] + b"Connection: close\r\n\r\n" + body))

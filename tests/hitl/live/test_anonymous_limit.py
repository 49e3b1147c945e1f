"""Those who are not known, over real sockets to the real web process: how often they
may fail, and what of its memory they fill. (Their share of its threads is in
test_per_key_limit.py.)"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from agents import keys
from hitl.environment import LOOPBACK
from hitl.live.buffering import BODY_LIMIT, ROOM_EACH
from hitl.local.process import Child
from tests.conftest import Gate
from tests.stack import Stack

pytestmark = pytest.mark.servers

MOST_MORE = 64 * 1024 * 1024  # bytes over idle
FAILURES = 5
TOKEN = "a-token-of-prometheus-alone"


@pytest.fixture
def web(live: Stack) -> Iterator[Web]:
    """A process of its own, so that nobody else's calls and memory count."""
    few = {"FAILURES_PER_MINUTE": str(FAILURES), "METRICS_TOKEN": TOKEN}
    own = Stack(live.state, few)
    own.start_web()
    assert own.web is not None
    yield Web(own.port, own.web)
    own.kill_web()


class Web:
    """One web process, from outside."""

    def __init__(self, port: int, child: Child) -> None:
        self.port, self.child = port, child
        self.base = f"http://{LOOPBACK}:{port}"

    @property
    def memory(self) -> int:
        """What it holds just now, in bytes."""
        status = Path(f"/proc/{self.child.pid}/status").read_text()
        (line,) = [x for x in status.splitlines() if x.startswith("VmRSS")]
        return int(line.split()[1]) * 1024

    def proposals(self, key: str) -> int:
        """The status of an agent's call."""
        return self.read("/api/v1/proposals", key)

    def read_metrics(self, token: str) -> int:
        return self.read("/metrics", token)

    def read(self, path: str, key: str) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        address = f"{self.base}{path}"
        return httpx2.get(address, headers=headers, trust_env=False).status_code

    def sign_in(self, name: str) -> int:
        """The status of a try with a wrong password."""
        with httpx2.Client(base_url=self.base, trust_env=False) as client:
            page = client.get("/sign-in/")
            # Over http a browser keeps a Secure cookie of loopback; httpx2 does not.
            cookies = "; ".join(f"{c.name}={c.value}" for c in page.cookies.jar)
            rest = page.text.split('name="csrfmiddlewaretoken" value="')[1]
            token = rest.split('"')[0]
            form = {"csrfmiddlewaretoken": token, "username": name, "password": "x"}
            headers = {"Origin": self.base, "Cookie": cookies}
            return client.post("/sign-in/", data=form, headers=headers).status_code


def test_one_address_fails_only_so_often_whatever_names_it_tries(
    web: Web, gate: Gate
) -> None:
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    assert web.proposals(key) == 200
    said = [web.sign_in(f"name-{number}") for number in range(FAILURES + 3)]
    assert said == [200] * FAILURES + [429] * 3
    assert web.proposals(key) == 200, "who was let in before is no stranger"


def test_wrong_keys_are_refused_on_every_path_that_takes_one(
    web: Web, gate: Gate
) -> None:
    known = keys.issue_key(agent=gate.agent, by=gate.owen)
    assert (web.proposals(known), web.read_metrics(TOKEN)) == (200, 200)
    said = [web.proposals(f"cs_{number}") for number in range(FAILURES - 1)]
    said += [web.read_metrics("x"), web.read_metrics("y"), web.proposals("z")]
    assert said == [401] * FAILURES + [429, 429]
    assert (web.proposals(known), web.read_metrics(TOKEN)) == (200, 200)


@pytest.mark.proof
def test_slow_uploads_of_strangers_fill_no_memory(
    web: Web, gate: Gate, proof_n: Callable[..., int], record_proof: Callable[..., None]
) -> None:
    number = proof_n(small=60, full=300)
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    assert web.proposals(key) == 200
    idle, most = web.memory, 0
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(begin(web.port, n)) for n in range(number)]
        for _ in range(8):
            for client in clients:
                send(client)
            assert web.proposals(key) == 200, "others are served meanwhile"
            most = max(most, web.memory)
        refused = sum(hung_up(client) for client in clients)
    assert refused >= number - ROOM_EACH // (BODY_LIMIT // 2)
    assert most - idle <= MOST_MORE, f"{(most - idle) / 2**20:.0f} MiB over idle"
    more = f"{(most - idle) / 2**20:.0f} MiB over idle (at most 64)"
    record_proof("T21", f"{number} slow uploads of 1 MiB without a key: {more}")


def begin(port: int, number: int) -> socket.socket:
    client = socket.create_connection((LOOPBACK, port), timeout=30)
    head = (
        "POST /api/v1/proposals HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer cs_made_up_{number}\r\nIdempotency-Key: k\r\n"
        f"Content-Type: application/json\r\nContent-Length: {BODY_LIMIT}\r\n\r\n"
    )
    client.sendall(head.encode())
    return client


def send(client: socket.socket) -> None:
    """One more eighth of the body, but for its last byte."""
    with contextlib.suppress(OSError):  # it was hung up on
        client.sendall(b"x" * (BODY_LIMIT // 8 - 1))


def hung_up(client: socket.socket) -> bool:
    """Whether it has an answer already, or was cut off."""
    client.setblocking(False)
    try:
        client.recv(1)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True

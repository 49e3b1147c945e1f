"""One web process, and several on one port."""

from __future__ import annotations

import signal
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from hitl import web
from hitl.environment import LOOPBACK
from hitl.local import installation
from hitl.local.process import Child
from tests import loops
from tests.stack import Stack, free_port, wait_until


def test_processes_of_one_user_open_one_port() -> None:
    port = free_port()
    with web.open_shared_socket(LOOPBACK, port), web.open_shared_socket(LOOPBACK, port):
        plain = socket.socket()
        with plain, pytest.raises(OSError, match="in use"):
            plain.bind((LOOPBACK, port))


def test_a_port_of_another_program_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server((LOOPBACK, 0)) as other:
        port = other.getsockname()[1]
        assert web.main(["--port", str(port)]) == web.START_FAILED
    said = capsys.readouterr().err
    assert said == f"{LOOPBACK} port {port}: Address already in use\n"


def test_a_solo_gate_listens_on_this_machine_only(
    settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    solo = settings.COUNTERSEAL.model_copy(update={"solo": True})
    settings.COUNTERSEAL = solo
    assert web.main(["--host", "0.0.0.0"]) == web.START_FAILED
    assert "for this machine only" in capsys.readouterr().err


@pytest.fixture
def pair(live: Stack, tmp_path: Path) -> Iterator[list[Child]]:
    """The running process and a second one on its port, from when on both accept
    connections."""
    assert live.web is not None
    program = installation.build_web_program(live._layout, live.environ)
    ready = tmp_path / "second.ready"
    second = Child(replace(program, argv=[*program.argv, "--ready-file", str(ready)]))
    wait_until(ready.exists, 60, lambda: live.log("web"))
    yield [live.web, second]
    second.kill()


def count_connections(child: Child, port: int) -> int:
    """The connections at this port that this process holds."""
    rows = [
        line.split()
        for line in Path(f"/proc/{child.pid}/net/tcp").read_text().splitlines()[1:]
    ]
    established = {
        f"socket:[{row[9]}]"
        for row in rows
        if int(row[1].split(":")[1], 16) == port and row[3] == "01"
    }
    held = {str(link.readlink()) for link in Path(f"/proc/{child.pid}/fd").iterdir()}
    return len(held & established)


def count_all(pair: list[Child], port: int) -> list[int]:
    return [count_connections(child, port) for child in pair]


@pytest.mark.servers
def test_two_processes_share_one_port_until_one_is_killed(
    live: Stack, pair: list[Child]
) -> None:
    wait_until(lambda: sum(count_all(pair, live.port)) == 0, 8)
    with ExitStack() as stack:
        for _ in range(40):
            client = socket.create_connection((LOOPBACK, live.port), timeout=30)
            stack.enter_context(client)
        wait_until(lambda: sum(count_all(pair, live.port)) == 40, 8)
        held = count_all(pair, live.port)
    assert min(held) >= 5, "a fair hash of 40 leaves fewer once in a million runs"
    pair[1].kill()
    address = f"{live.base_url}/livez"
    said = [httpx2.get(address, trust_env=False) for _ in range(20)]
    assert Counter(answer.status_code for answer in said) == {200: 20}


@pytest.mark.servers
def test_a_draining_process_answers_and_keeps_no_connection(
    live: Stack, tmp_path: Path
) -> None:
    ready, url = tmp_path / "ready", f"http://{LOOPBACK}:{(port := free_port())}"
    environ = {**live.environ, "PORT": str(port)}
    program = installation.build_web_program(live._layout, environ, "draining")
    more = ["--drain", "600", "--ready-file", str(ready)]
    child = Child(replace(program, argv=[*program.argv, *more]))
    wait_until(ready.exists, 60, lambda: live.log("draining"))
    with httpx2.Client(trust_env=False, base_url=url) as client:
        assert "connection" not in client.get("/livez").headers
        child.process.send_signal(signal.SIGTERM)
        wait_until(lambda: client.get("/readyz").status_code == 503, 10)
        wait_until(
            lambda: client.get("/livez").headers.get("connection") == "close", 10
        )
        assert client.get("/readyz").json()["status"] == "stopping"
    child.process.send_signal(signal.SIGINT)
    child.process.wait(20)


def test_draining_ends_by_itself() -> None:
    server = web.WebServer(uvicorn.Config("x:y"), None, drain=0.3)
    server.config.encoded_headers = []
    loops.run(server.answer_last_requests())
    assert web.LAST_ANSWER in server.server_state.default_headers

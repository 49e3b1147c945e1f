"""`counterseal up` as a person types it: from nothing to a clean stop."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from counterseal_client import Gate
from counterseal_client.settings import load_file
from hitl.local import defaults
from tests.guards import ROOT
from tests.installations import copy_installation, environ, up
from tests.stack import free_port, wait_until

pytestmark = pytest.mark.servers


def refused(state: Path, port: int, **changes: str) -> str:
    """The one line of a start that could not be."""
    done = subprocess.run(
        [sys.executable, "manage.py", "up", "--demo"],
        cwd=ROOT,
        env=environ(state, port, **changes),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    *keys, line = done.stderr.splitlines()
    assert all("wrote new keys to" in text for text in keys)
    return line


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Where nothing is yet."""
    return tmp_path / "state"


@pytest.fixture
def stopped(state: Path) -> Path:
    """The STATE of an installation that ran once."""
    copy_installation(state)
    return state


def test_from_nothing_to_a_clean_stop_and_again(state: Path) -> None:
    port, known = free_port(), state.parent / ".local/state/counterseal/gate.json"
    with up(state, port, WEB_PROCESSES="1") as first:
        for step in ("PostgreSQL", "broker", "migrations", "web"):
            assert re.search(rf"^  {step}.* s$", first.said, re.M), first.said
        wait_until(lambda: "Press Ctrl-C" in first.said, 20)
        logins = re.findall(r"^  \w+ +(\w+) +\w{4}(?:-\w{4}){3}$", first.said, re.M)
        assert logins == ["rita", "tom", "sue", "sam", "adam", "alma", "otto", "owen"]
        ready = httpx2.get(f"http://127.0.0.1:{port}/readyz", trust_env=False)
        assert set(ready.json().values()) == {"ok"}
        assert "already runs in" in refused(state, free_port())
        found = load_file(known)
        assert (found.url, first.said.count("pip install http")) == (
            f"http://127.0.0.1:{port}",
            1,
        )
        with Gate(found.url, found.key) as gate:
            assert gate.whoami().tools == ("*",)
        beside: dict[str, str] = {"STATE": str(state)}  # a command of another terminal
        defaults.fill_environment(beside)
        assert beside["BASE_URL"] == f"http://127.0.0.1:{port}"
        first.stop(signal.SIGTERM)
    assert not known.exists()
    stopped: dict[str, str] = {"STATE": str(state)}
    defaults.fill_environment(stopped)
    assert stopped["PORT"] == "8000"
    keys = sorted((path.name, path.read_text()) for path in (state / "keys").iterdir())
    made = (state / "demo.json").read_text()
    with up(state, port, WEB_PROCESSES="1") as second:
        second.stop(signal.SIGINT)
    again = sorted((path.name, path.read_text()) for path in (state / "keys").iterdir())
    assert again == keys
    assert (state / "demo.json").read_text() == made


def test_a_killed_worker_comes_back_and_a_killed_supervisor_leaves_nothing(
    stopped: Path,
) -> None:
    with up(stopped, free_port(), WEB_PROCESSES="1") as running:
        (worker,) = children(running.process.pid, b"hitl.celery")
        # Its beat and its two pool processes.
        wait_until(lambda: len(children(worker, b"")) == 3, 30)
        below = children(worker, b"")
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: "worker is running again" in running.said, 20)
        assert "worker stopped (SIGKILL): restarting it in 0.5 s" in running.said
        wait_until(lambda: not any(map(alive, below)), 1)
        everyone = descendants(running.process.pid)
        running.process.kill()
        running.process.wait()
        wait_until(lambda: not any(map(alive, everyone)), 20)
    with up(stopped, running.port, WEB_PROCESSES="1") as again:
        assert again.ready


def test_each_web_process_is_watched_and_has_a_log(stopped: Path) -> None:
    with up(stopped, free_port(), WEB_PROCESSES="3") as running:
        assert re.search(r"^  web \(3\), worker, store .* s$", running.said, re.M)
        webs = children(running.process.pid, b"hitl.web")
        assert len(webs) == 3
        assert {path.name for path in (stopped / "logs").glob("web*")} == {
            "web-1.log",
            "web-2.log",
            "web-3.log",
        }
        os.kill(webs[1], signal.SIGKILL)
        wait_until(lambda: "web-2 is running again" in running.said, 20)
        wait_until(lambda: len(children(running.process.pid, b"hitl.web")) == 3, 20)
        ready = httpx2.get(f"http://127.0.0.1:{running.port}/readyz", trust_env=False)
        assert set(ready.json().values()) == {"ok"}
        running.stop(signal.SIGTERM)


def test_a_taken_port_is_said_with_another(state: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        line = refused(state, port)
    assert f"PORT {port} is in use on 127.0.0.1" in line
    assert f"PORT={port + 1}" in line


def test_an_unreachable_database_is_said_with_what_to_do(state: Path) -> None:
    url = "postgresql://u:hunter2@127.0.0.1:1/x"
    line = refused(state, free_port(), DEPLOYMENT="local", DATABASE_URL=url)
    assert "DATABASE_URL: cannot connect" in line
    assert "unset DATABASE_URL for a private one" in line
    assert "hunter2" not in line


def test_a_wrong_variable_is_said_by_name(state: Path) -> None:
    assert refused(state, free_port(), LOG_LEVEL="LOUD").startswith(
        "counterseal: LOG_LEVEL:"
    )
    assert "PORT: 'web' is not a number" in refused(state, 1, PORT="web")
    many = refused(state, free_port(), WEB_PROCESSES="100")
    assert many.startswith("counterseal: WEB_PROCESSES:")
    assert "24" in many


def test_solo_mode_is_refused_for_more_than_one_person(state: Path) -> None:
    assert "--demo has people of its own" in refused(state, free_port(), SOLO="1")
    public = {"DEPLOYMENT": "local", "BASE_URL": "http://gate.example.com"}
    line = refused(state, free_port(), SOLO="1", **public)
    assert line.startswith("counterseal: SOLO: is for one person on their own machine")


def children(parent: int, argument: bytes) -> list[int]:
    """The direct children whose command line has these bytes."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            line = (folder / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == parent and argument in line:
            found.append(int(folder.name))
    return found


def descendants(parent: int) -> list[int]:
    """Its children and theirs."""
    below = children(parent, b"")
    return below + [pid for child in below for pid in descendants(child)]


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"

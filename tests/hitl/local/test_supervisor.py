from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hitl.local import supervisor
from hitl.local.layout import InstallationError
from hitl.local.process import Child, Program
from hitl.local.supervisor import SupervisedService, Supervisor
from tests.guards import ROOT
from tests.stack import wait_until


def program(name: str, code: str, log: Path | None = None) -> Program:
    argv = [sys.executable, "-c", code]
    return Program(name=name, argv=argv, env=dict(os.environ), log=log)


def service(name: str, code: str, *, may_finish: bool = False) -> SupervisedService:
    return SupervisedService(
        lambda: Child(program(name, code)), 2.0, may_finish=may_finish
    )


FOR_EVER = "import time; time.sleep(600)"


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def keeper(lines: list[str]) -> Iterator[Supervisor]:
    made = Supervisor(lines.append)
    yield made
    for one in made.services.values():
        one.child.kill()


def after_a_look(keeper: Supervisor) -> bool:
    for name, one in keeper.services.items():
        keeper._look_after(name, one)
    return True


def test_a_child_that_is_killed_is_started_again_and_said(
    keeper: Supervisor, lines: list[str]
) -> None:
    keeper.launch("web", service("web", FOR_EVER))
    first = keeper.services["web"].child
    os.kill(first.pid, signal.SIGKILL)
    first.process.wait()
    wait_until(lambda: after_a_look(keeper) and len(lines) == 2, 5)
    assert lines == [
        "web stopped (SIGKILL): restarting it in 0.5 s",
        "web is running again",
    ]
    assert keeper.services["web"].child.pid != first.pid
    keeper.stop([["web"]])


def test_a_child_that_cannot_stay_is_tried_less_and_less(
    keeper: Supervisor, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "BACKOFF_S", (0.0, 0.01, 0.02))
    keeper.launch("web", service("web", "raise SystemExit(3)"))
    wait_until(
        lambda: after_a_look(keeper) and keeper.services["web"].failures >= 4, 10
    )
    waits = [
        line.split("restarting it in ")[1] for line in lines if "exit code 3" in line
    ]
    assert waits[:4] == ["0 s", "0.01 s", "0.02 s", "0.02 s"]


def test_a_start_that_fails_is_said_and_tried_again(
    keeper: Supervisor, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start() -> Child:
        if not lines or len(lines) > 2:
            return Child(program("postgres", "raise SystemExit(1)"))
        raise InstallationError("the disk is full")

    monkeypatch.setattr(supervisor, "BACKOFF_S", (0.0,))
    keeper.launch("postgres", SupervisedService(start, 1.0))
    wait_until(
        lambda: after_a_look(keeper) and "postgres is running again" in lines, 10
    )
    assert "postgres stopped (the disk is full): restarting it in 0 s" in lines


def test_one_that_may_finish_is_left_finished(
    keeper: Supervisor, lines: list[str]
) -> None:
    keeper.launch("riley", service("riley", "", may_finish=True))
    keeper.services["riley"].child.process.wait()
    after_a_look(keeper)
    assert lines == []


def test_stopping_follows_the_order(keeper: Supervisor, tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = (
        "import signal, sys, time\n"
        "def bye(*a):\n"
        "    print(sys.argv[0] + '{0} stops', flush=True); sys.exit()\n"
        "signal.signal(signal.SIGTERM, bye)\n"
        "print('{0} runs', flush=True)\n"
        "time.sleep(600)\n"
    )
    for name in ("postgres", "web", "worker"):
        one = program(name, code.format(name), log)
        keeper.launch(name, SupervisedService(partial(Child, one), 2.0))
    wait_until(lambda: log.read_text().count("runs") == 3, 10)
    keeper.stop([["worker"], ["web"], ["postgres"]])
    stops = [line[2:] for line in log.read_text().splitlines() if "stops" in line]
    assert stops == ["worker stops", "web stops", "postgres stops"]


def test_one_that_will_not_stop_is_killed_with_all_it_started(
    keeper: Supervisor, lines: list[str]
) -> None:
    code = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"subprocess.Popen([sys.executable, '-c', {FOR_EVER!r}])\n"
        "time.sleep(600)\n"
    )
    keeper.launch("web", SupervisedService(lambda: Child(program("web", code)), 0.3))
    group = keeper.services["web"].child.pid
    wait_until(lambda: members(group) == 2, 10)
    keeper.stop([["web"]])
    assert lines == ["web did not stop in time and was killed"]
    wait_until(lambda: members(group) == 0, 5)


def members(group: int) -> int:
    """How many living processes this process group has."""
    found = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += fields[0] != "Z" and int(fields[2]) == group
    return found


PARENT = f"""
import os, sys, time
from hitl.local.process import Child, Program
child = Child(Program("x", [sys.executable, "-c", {FOR_EVER!r}], dict(os.environ)))
print(child.pid, flush=True)
time.sleep(600)
"""


def test_children_do_not_outlive_a_killed_supervisor() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent.stdout as output:
        child = int(output.readline())
    assert members(child) == 1
    parent.kill()
    parent.wait()
    wait_until(lambda: members(child) == 0, 5)

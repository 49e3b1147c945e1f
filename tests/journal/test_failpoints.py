"""Fault points: every one is named in one table, does what its flag says to one
process, and costs nothing while no flag can be up."""

from __future__ import annotations

import ast
import dis
import os
import signal
import subprocess
import sys
import timeit
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from journal import failpoints

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "journal",
    "policies",
    "reviews",
    "agents",
    "notifications",
    "assurance",
    "stats",
    "desk",
    "hitl",
)
LEAST = 20
CALLS = 200_000
STOPS = 50
MOST_NS = 1_000  # many times what it takes, for a machine that does other things


def passed() -> Iterator[tuple[str, str]]:
    """(name, module) of every point of the product's code."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and is_point(node.func):
                    (name, *_) = node.args
                    assert isinstance(name, ast.Constant), path
                    yield str(name.value), str(path.relative_to(ROOT))


def is_point(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "point"
        and isinstance(node.value, ast.Name)
        and node.value.id == "failpoints"
    )


def test_the_table_names_every_point_of_the_code_and_no_other() -> None:
    found = Counter(name for name, _ in passed())
    assert set(found) == set(failpoints.POINTS)
    assert [name for name, count in found.items() if count > 1] == []
    assert len(failpoints.POINTS) >= LEAST


def test_off_a_point_is_one_comparison() -> None:
    """Nothing is called and nothing is made before the jump past the rest."""
    steps = [
        one.opname
        for one in dis.get_instructions(failpoints.point)
        if one.opname not in {"RESUME", "CACHE"}
    ]
    jump = next(at for at, name in enumerate(steps) if "JUMP" in name)
    assert steps[:jump] == ["LOAD_GLOBAL"]
    assert failpoints.ARMED == ""


def test_off_a_point_takes_no_time() -> None:
    taken = min(timeit.repeat(lambda: failpoints.point("x"), number=CALLS, repeat=3))
    assert taken / CALLS * 1e9 < MOST_NS


@pytest.fixture
def armed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(failpoints, "ARMED", str(tmp_path))
    return tmp_path


def test_a_flag_for_one_row_is_for_nobody_else(armed: Path) -> None:
    (armed / "after_claim@x-1").write_text("raise")
    failpoints.point("after_claim", "x-2")
    failpoints.point("before_claim", "x-1")
    with pytest.raises(failpoints.InjectedFault):
        failpoints.point("after_claim", "x-1")
    failpoints.point("after_claim", "x-1")  # the successor gets through


def test_a_flag_for_a_point_is_for_the_first_who_comes_by(armed: Path) -> None:
    (armed / "after_claim").write_text("raise")
    with pytest.raises(failpoints.InjectedFault):
        failpoints.point("after_claim", "x-1")
    failpoints.point("after_claim", "x-2")
    assert list(armed.iterdir()) == []


def test_nothing_said_is_a_kill(armed: Path) -> None:
    (armed / "after_claim").touch()
    assert ended(lambda: failpoints.point("after_claim")) == -signal.SIGKILL


def test_who_is_stopped_goes_on_where_it_was(armed: Path) -> None:
    (armed / "after_claim").write_text("stop")
    child = os.fork()
    if child == 0:
        failpoints.point("after_claim", "x-1")
        os._exit(7)
    _, status = os.waitpid(child, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert (armed / f"{failpoints.STOPPED_PREFIX}{child}").read_text() == "after_claim"
    os.kill(child, signal.SIGCONT)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert list(armed.iterdir()) == []


THREADED = """
import sys, threading
from journal import failpoints

def passes():
    for name in sys.stdin:
        failpoints.point(name.strip())

other = threading.Thread(target=passes)
other.start()
other.join()
"""


def test_who_is_stopped_in_a_thread_does_nothing_more_before_it_stands(
    armed: Path,
) -> None:
    """A signal to the process is taken by its main thread, and the one that sent it
    would go on meanwhile: what stops then has taken its own name down."""
    env = {**os.environ, "COUNTERSEAL_FAULT": str(armed)}
    command = [sys.executable, "-c", THREADED]
    with subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        for number in range(STOPS):
            (armed / f"point-{number}").write_text("stop")
            child.stdin.write(f"point-{number}\n".encode())
            child.stdin.flush()
            _, status = os.waitpid(child.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            stands = (armed / f"{failpoints.STOPPED_PREFIX}{child.pid}").exists()
            child.send_signal(signal.SIGCONT)
            assert stands
        child.stdin.close()
        assert child.wait(10) == 0


def ended(work: object) -> int:
    """How a child of ours ends that does this."""
    child = os.fork()
    if child == 0:
        assert callable(work)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

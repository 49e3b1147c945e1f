"""A child of the fork server is what `python` would have started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.command_line.shell import restore_interrupt
from tests.client.fork_server.commands import build_command
from tests.guards import ROOT

SHOW = """
import json, os, signal, sys
signals = [str(signal.getsignal(number)) for number in signal.valid_signals()]
streams = [
    (stream.fileno(), stream.encoding, stream.errors, stream.line_buffering)
    for stream in (sys.stdin, sys.stdout, sys.stderr)
]
print(json.dumps([
    __name__, __file__, sys.argv, sys.path, dict(os.environ), os.getcwd(), signals,
    streams, sys.stdin.read(),
]))
print(len(os.listdir("/dev/fd")))
"""
WAIT = """
import signal, sys
try:
    print("waits", flush=True)
    signal.pause()
except KeyboardInterrupt:
    sys.exit(3)
"""
LATE = """
import threading
def end_last():
    threading.main_thread().join()
    print("late")
threading.Thread(target=end_last).start()
"""
ENVIRON = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module", autouse=True)
def commands(fork_server: None) -> None:
    """The commands here run in its children."""


def run(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=ENVIRON,
        input="typed",
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=restore_interrupt,
    )


def write_module(folder: Path, text: str) -> Path:
    file = folder / "program.py"
    file.write_text(text)
    return file


@pytest.mark.parametrize("is_module", [True, False])
def test_a_child_is_like_a_process_of_its_own(tmp_path: Path, is_module: bool) -> None:
    file = write_module(tmp_path, SHOW)
    words = ["-m", "program"] if is_module else [str(file)]
    words += ["a b", os.fsdecode(b"\xff"), ""]
    forked = run(tmp_path, build_command(*words))
    started = run(tmp_path, [sys.executable, *words])
    assert (forked.returncode, forked.stderr) == (0, "")
    (shown, descriptors), (same, fewer) = map(
        str.splitlines, (forked.stdout, started.stdout)
    )
    assert shown == same
    assert int(descriptors) == int(fewer) + 1  # the one by which its end is noticed


@pytest.mark.parametrize(
    "text",
    [
        "import sys; sys.exit(7)",
        "import sys; sys.exit('wrong')",
        "import atexit; atexit.register(print, 'last'); print('first')",
        LATE,
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
        "raise LookupError('not here')",
    ],
)
def test_it_ends_alike(tmp_path: Path, text: str) -> None:
    file = write_module(tmp_path, text)
    forked = run(tmp_path, build_command(str(file)))
    started = run(tmp_path, [sys.executable, str(file)])
    assert (forked.returncode, forked.stdout) == (started.returncode, started.stdout)
    assert forked.stderr.splitlines()[-1:] == started.stderr.splitlines()[-1:]


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 3),
        (signal.SIGTERM, -signal.SIGTERM),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_a_signal_of_the_launcher_is_the_childs(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    file = write_module(tmp_path, WAIT)
    with subprocess.Popen(
        build_command(str(file)), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        process.send_signal(number)
        assert process.wait(20) == code
        assert process.stdout.read() == ""  # the child has ended, too

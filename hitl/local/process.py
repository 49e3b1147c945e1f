"""Child processes that never outlive us and never see our terminal's Ctrl-C: the
supervisor alone decides who stops, and in which order."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from hitl import child_processes


@dataclass(frozen=True)
class Program:
    """What to run. `user` is set for a process that must not run as root."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    log: Path | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    # What it gets when the supervisor is killed; None is the stop signal.
    orphan_signal: signal.Signals | None = None
    user: str | None = None
    cwd: Path | None = None


Adapt = Callable[[Program], Program]


def as_it_is(program: Program) -> Program:
    """The usual command."""
    return program


@dataclass
class Child:
    """One running program. Start it from the main thread: the kernel's parent-death
    signal is sent when the thread that forked ends, not the process."""

    program: Program
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        program = self.program
        output = _open(program.log)
        try:
            self.process = subprocess.Popen(  # noqa: S603
                program.argv,
                env=dict(program.env),
                cwd=program.cwd,
                user=program.user,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # Survives exec, `unshare --user` included.
                preexec_fn=partial(
                    child_processes.die_with,
                    os.getpid(),
                    program.orphan_signal or program.stop_signal,
                ),
            )
        finally:
            if output is not None:
                output.close()

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def pid(self) -> int:
        return self.process.pid

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self.process.poll()

    def ask_to_stop(self) -> None:
        if self.exit_code() is None:
            self.process.send_signal(self.program.stop_signal)

    def stop(self, *, within: float) -> bool:
        """Ask it to stop, and kill its whole group after `within` seconds.

        Returns whether it stopped by itself.
        """
        self.ask_to_stop()
        return self.end(within=within)

    def end(self, *, within: float) -> bool:
        """Wait for one that was asked to stop, and kill it when it does not."""
        try:
            self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True

    def kill(self) -> None:
        """SIGKILL to the process and all it started."""
        kill_group(self.pid)
        self.process.wait()


def kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def wait_gone(pid: int, *, within: float) -> bool:
    """Whether a process that is not our child has ended within so many seconds."""
    end = time.monotonic() + within
    while _alive(pid):
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
    return True


def _alive(pid: int) -> bool:
    """A zombie is not: in a container nobody may ever collect it."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text()
    except ProcessLookupError:
        return False
    except OSError:  # no /proc, or somebody else's process
        return True
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def _open(log: Path | None) -> IO[bytes] | None:
    if log is None:
        return None
    log.parent.mkdir(parents=True, exist_ok=True)
    return log.open("ab")

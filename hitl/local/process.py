"""Child processes that end with the supervisor and ignore the terminal's Ctrl-C, so
that the supervisor alone decides what stops, and in which order."""

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
    # The signal when the supervisor is killed; None means the stop signal.
    orphan_signal: signal.Signals | None = None
    user: str | None = None
    cwd: Path | None = None


ProgramAdapter = Callable[[Program], Program]


def leave_unchanged(program: Program) -> Program:
    """Return the program unchanged."""
    return program


@dataclass
class Child:
    """One running program. Start it from the main thread: the kernel sends its
    parent-death signal when the thread that forked ends, not the process."""

    program: Program
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        program = self.program
        output = _open_log(program.log)
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
                # This setting survives exec, also of `unshare --user`.
                preexec_fn=partial(
                    child_processes.signal_on_parent_death,
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
        """Ask it to stop, and kill its process group after `within` seconds.

        Returns whether it stopped in time.
        """
        self.ask_to_stop()
        return self.end(within=within)

    def end(self, *, within: float) -> bool:
        """Wait for a child that was asked to stop; kill its process group after
        `within` seconds. Returns whether it stopped in time."""
        try:
            self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True

    def kill(self) -> None:
        """Send SIGKILL to the process and everything it started."""
        kill_group(self.pid)
        self.process.wait()


def kill_group(pid: int) -> None:
    """Send SIGKILL to a process group; does nothing if it has ended."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def wait_until_gone(pid: int, *, within: float) -> bool:
    """Whether a process that is not our child ends within `within` seconds."""
    end = time.monotonic() + within
    while _is_alive(pid):
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
    return True


def _is_alive(pid: int) -> bool:
    """Whether the process runs. A zombie does not: in a container nothing may ever reap
    it."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text()
    except ProcessLookupError:
        return False
    except OSError:  # no /proc, or another user's process
        return True
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def _open_log(log: Path | None) -> IO[bytes] | None:
    if log is None:
        return None
    log.parent.mkdir(parents=True, exist_ok=True)
    return log.open("ab")

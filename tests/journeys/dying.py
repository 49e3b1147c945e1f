"""Operations in a child of this process, which a fault point kills, breaks or freezes:
what a web process or a worker would leave behind, a hundred times cheaper."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from asgiref.local import Local
from django.db import connections

from journal import failpoints
from journal.failpoints import FaultAction

Work = Callable[[], object]
FINE, REFUSED, WRONG = 0, 3, 4


@dataclass
class Child:
    """One fork of us, at work or frozen."""

    pid: int

    def frozen(self) -> bool:
        """Wait until it has stopped itself; False when it ended instead."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        return os.WIFSTOPPED(status)

    def go_on(self) -> int:
        """Continue one that is frozen, and its exit code."""
        os.kill(self.pid, signal.SIGCONT)
        return self.end()

    def end(self) -> int:
        """Its exit code, negative for a signal."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def start(
    work: Work, folder: Path, flag: str, action: FaultAction, *refusals: type[Exception]
) -> Child:
    """Do it in a child where this one flag is up. It exits with REFUSED for one of the
    refusals, with WRONG for any other exception."""
    (folder / flag).write_text(action)
    connections.close_all()  # or the child's end would close our connection too
    pid = os.fork()
    if pid:
        return Child(pid)
    _forget_connections()
    failpoints.ARMED = str(folder)
    code = WRONG
    try:
        work()
        code = FINE
    except refusals:
        code = REFUSED
    except BaseException:
        traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(code)


def _forget_connections() -> None:
    """Every connection of any thread or event loop before the fork is still our
    parent's: what the child left open there would never end."""
    connections._connections = Local(connections.thread_critical)  # type: ignore[attr-defined]


def breaks(work: Work, folder: Path, flag: str) -> bool:
    """Whether an exception was raised at this point, and took the flag with it. Who
    called may have gone on, where that is no reason to stop."""
    ended = start(work, folder, flag, FaultAction.RAISE).end()
    return ended in {FINE, WRONG} and not any(folder.iterdir())


def dies(work: Work, folder: Path, flag: str) -> bool:
    """Whether it was killed at this point, and took the flag with it."""
    killed = start(work, folder, flag, FaultAction.KILL).end() == -signal.SIGKILL
    return killed and not any(folder.iterdir())

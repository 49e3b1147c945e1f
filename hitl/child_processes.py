"""Child processes: what one computes for its parent, and their end with the parent,
through the kernel's parent-death signal.

The signal is Linux's; elsewhere `signal_on_parent_death` does nothing.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

Result = TypeVar("Result")
PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def signal_on_parent_death(parent: int, number: signal.Signals) -> None:
    """Have the kernel send `number` to this process when its parent ends; exit now if
    `parent` has already ended.

    The kernel watches the thread that forked, not the process: start children from a
    thread that lives as long as the parent.
    """
    if _LIBC is None:
        return
    _LIBC.prctl(PR_SET_PDEATHSIG, int(number))
    if os.getppid() != parent:  # the parent died before the prctl call
        os._exit(1)


def call_in_child(function: Callable[[], Result]) -> Result:
    """Call a function in a fork of this process, and return what it returns: what it
    imports and creates takes memory only until it ends.

    Raises what the function raises, and EOFError if the child is killed.
    """
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(
        target=_answer, args=(function, sender, os.getpid())
    )
    child.start()
    sender.close()
    result: Result
    try:
        result, error = receiver.recv()
    finally:
        child.terminate()  # it has answered, or its parent is to stop
        child.join()
        receiver.close()
    if error is not None:
        raise error
    return result


def _answer(function: Callable[[], object], sender: Connection, parent: int) -> None:
    signal_on_parent_death(parent, signal.SIGKILL)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    try:
        sender.send((function(), None))
    except Exception as error:
        sender.send((None, error))

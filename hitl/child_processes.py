"""Ends child processes with their parent, through the kernel's parent-death signal.

Works on Linux only; elsewhere `signal_on_parent_death` does nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

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

"""Nothing outlives who started it: the kernel is asked to end a process when its parent
dies, however it dies. Elsewhere than on Linux nobody can be asked."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def die_with(parent: int, number: signal.Signals) -> None:
    """Get this signal when the parent ends; end now if it already has.

    The kernel goes by the thread that forked, not by the process: start children from
    a thread that lives as long.
    """
    if _LIBC is None:
        return
    _LIBC.prctl(PR_SET_PDEATHSIG, int(number))
    if os.getppid() != parent:  # it died before we asked to be told
        os._exit(1)

"""Named points at which a test may kill this process, to prove what a crash leaves
behind. Off, a point is one comparison with an empty string."""

from __future__ import annotations

import os
import signal
from pathlib import Path

# "<point>" or "<point>=<flag file>": with a file, only the first process to take it
# away dies, so that its successor gets through.
ARMED = os.environ.get("HOLDPOINT_FAULT", "")


def point(name: str) -> None:
    """SIGKILL this process if it is armed for this point."""
    if not ARMED:
        return
    armed, _, flag = ARMED.partition("=")
    if armed == name and _taken(flag):
        os.kill(os.getpid(), signal.SIGKILL)


def _taken(flag: str) -> bool:
    if not flag:
        return True
    try:
        Path(flag).unlink()
    except FileNotFoundError:
        return False
    return True

"""Named points at which a test may kill this process, to prove what a crash leaves
behind. Off, a point is one comparison with an empty string."""

from __future__ import annotations

import os
import signal
from pathlib import Path

# A folder of flags. A file `<point>` in it kills the first process that comes by, a
# file `<point>@<subject>` the first one that is about this row. Taking the flag away
# is what arms the death, so that the successor gets through.
ARMED = os.environ.get("HOLDPOINT_FAULT", "")


def point(name: str, subject: str = "") -> None:
    """SIGKILL this process if a flag is up for this point."""
    if ARMED and (_taken(name) or _taken(f"{name}@{subject}")):
        os.kill(os.getpid(), signal.SIGKILL)


def _taken(flag: str) -> bool:
    try:
        (Path(ARMED) / flag).unlink()
    except FileNotFoundError:
        return False
    return True

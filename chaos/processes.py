"""Who belongs to whom, by what the kernel says."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def group(pid: int) -> list[int]:
    """All living processes of a group, its leader first."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and _group_of(int(folder.name)) == pid:
            found.append(int(folder.name))
    return sorted(found, key=lambda one: (one != pid, one))


def _group_of(pid: int) -> int | None:
    stat = _stat(pid)
    return int(stat[2]) if stat and stat[0] != "Z" else None


def _stat(pid: int) -> list[str]:
    """From the state on: state, parent, group, ..."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rsplit(")", 1)[1].split()


def stopped_group(pid: int) -> int | None:
    """The leader of this process's group, while it is stopped."""
    stat = _stat(pid)
    return int(stat[2]) if stat and stat[0] == "T" else None


def signal_all(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, number)


def signal_one(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)

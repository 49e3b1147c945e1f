"""The file by which programs of this user find the gate that runs on this machine:
`Gate()` reads it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from counterseal_client.settings import (
    InvalidSettings,
    Settings,
    find_running_file,
    load_file,
    save_file,
)


def write_gate_file(url: str, key: str) -> Path:
    """Say where the gate is and the key of its ready agent, readable by this user
    alone; the gate that starts last is the one that programs find. *Raises* OSError."""
    path = find_running_file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chmod(path.parent, 0o700)
    return save_file(path, Settings(url, key))


def remove_gate_file(url: str, key: str) -> None:
    """Remove the file, unless it is about another gate."""
    path = find_running_file()
    with suppress(OSError, InvalidSettings):
        if load_file(path) == Settings(url, key):
            path.unlink()

"""Another key for grants, in three steps with a start of every process after each.

First the new key is published and signs nothing, so that every service knows it; then
it signs, and the old one is still accepted; at last the old one is forgotten. A step
that is cut short leaves keys that work, and may be done again.
"""

from __future__ import annotations

import os
from pathlib import Path

from . import keys
from .layout import Fault

SIGNS, NEXT, RETIRED = "grant_key", "grant_keys_next", "grant_keys_retired"


def publish(folder: Path) -> None:
    """Make the next key, unless there is one. *Raises* Fault."""
    if not _read(folder, NEXT):
        keys.replace(folder / NEXT, keys.new())


def sign(folder: Path) -> None:
    """Let the published key sign. *Raises* Fault where there is none."""
    (signs,), waiting = _read(folder, SIGNS), _read(folder, NEXT)
    if not waiting:
        raise Fault("no key is published yet: run `rotate_grant_key publish` first")
    if waiting[0] != signs:  # else the last run ended right before its last line
        retired = dict.fromkeys([signs, *_read(folder, RETIRED)])
        keys.replace(folder / RETIRED, ",".join(retired))
        keys.replace(folder / SIGNS, waiting[0])
    keys.replace(folder / NEXT, ",".join(waiting[1:]))


def forget(folder: Path) -> None:
    """Accept the keys that no longer sign no more. *Raises* Fault."""
    keys.replace(folder / RETIRED, "")


def _read(folder: Path, name: str) -> list[str]:
    if name.upper() in os.environ:
        raise Fault(f"{name.upper()} is a variable of the environment: change it there")
    path = folder / name
    text = keys.read(folder, name) if path.exists() or name == SIGNS else ""
    return [part for part in text.split(",") if part]

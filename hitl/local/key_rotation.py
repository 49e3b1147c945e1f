"""Replaces the key that signs grants, in three steps; restart every process after each.

`publish` makes a new key known to services without using it. `sign` lets it sign, while
services still accept the old key. `forget` withdraws the old key. An interrupted step
leaves working keys and may be repeated. The command calls these functions by name.
"""

from __future__ import annotations

import os
from pathlib import Path

from . import keys
from .layout import InstallationError

SIGNS, NEXT, RETIRED = "grant_key", "grant_keys_next", "grant_keys_retired"


def publish(folder: Path) -> None:
    """Create the next key, unless there is one. *Raises* InstallationError."""
    if not _read_keys(folder, NEXT):
        keys.replace_key(folder / NEXT, keys.generate_key())


def sign(folder: Path) -> None:
    """Let the published key sign. *Raises* InstallationError where there is none."""
    (signs,), waiting = _read_keys(folder, SIGNS), _read_keys(folder, NEXT)
    if not waiting:
        raise InstallationError(
            "no new key is published: run `counterseal keys rotate-grant publish` first"
        )
    if waiting[0] != signs:  # if equal, the last run ended before its last line
        retired = dict.fromkeys([signs, *_read_keys(folder, RETIRED)])
        keys.replace_key(folder / RETIRED, ",".join(retired))
        keys.replace_key(folder / SIGNS, waiting[0])
    keys.replace_key(folder / NEXT, ",".join(waiting[1:]))


def forget(folder: Path) -> None:
    """Stop accepting retired keys. *Raises* InstallationError."""
    keys.replace_key(folder / RETIRED, "")


def _read_keys(folder: Path, name: str) -> list[str]:
    if name.upper() in os.environ:
        raise InstallationError(
            f"{name.upper()} is set in the environment: change it there"
        )
    path = folder / name
    text = keys.read_key(folder, name) if path.exists() or name == SIGNS else ""
    return [part for part in text.split(",") if part]

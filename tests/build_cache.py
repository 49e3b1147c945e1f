"""What takes seconds to build and follows from files of the project alone: built once,
kept in var/test-cache until one of its sources changes, whichever process asks first.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from hitl.environment import ROOT

FOLDER = ROOT / "var" / "test-cache"


def build_once(
    name: str, patterns: Iterable[str], build: Callable[[Path], None]
) -> Path:
    """The file or folder that `build` makes at the path that it is given. `patterns`
    are its sources, below the project's root."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    kept = FOLDER / f"{name}-{_hash_sources(patterns)}"
    with (FOLDER / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the others wait, and find it
        if not kept.exists():
            for old in FOLDER.glob(f"{name}-*"):
                _remove(old)
            draft = FOLDER / f"{name}-draft"
            build(draft)
            draft.rename(kept)
    return kept


def _hash_sources(patterns: Iterable[str]) -> str:
    seen = hashlib.sha256()
    for pattern in patterns:
        for file in sorted(ROOT.glob(pattern)):
            if file.is_file():
                seen.update(f"{file.relative_to(ROOT)}\n".encode())
                seen.update(file.read_bytes())
    return seen.hexdigest()[:16]


def _remove(old: Path) -> None:
    if old.is_dir():
        shutil.rmtree(old)
    else:
        old.unlink()

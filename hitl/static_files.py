"""The static files that the web processes of a host serve: hashed and compressed, in
`STATE/static`, or in the image."""

from __future__ import annotations

import fcntl
import hashlib
import io
from pathlib import Path

import django
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

from .environment import COLLECTED


def collect_static_files(state: Path) -> None:
    """Collect the files, only if a source or Django itself changed: it takes longer
    than the rest of a second start. Processes that start together collect them
    once. An image has them already."""
    if COLLECTED.is_dir():
        return
    state.mkdir(parents=True, exist_ok=True)
    stamp = state / "static.stamp"
    with (state / "static.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        digest = _hash_sources()
        if stamp.exists() and stamp.read_text() == digest:
            return
        stamp.unlink(missing_ok=True)
        options = {"interactive": False, "clear": True, "stdout": io.StringIO()}
        call_command("collectstatic", **options)
        stamp.write_text(digest)


def _hash_sources() -> str:
    """A hash that changes when a static file is added, changed or removed."""
    digest = hashlib.sha256(django.__version__.encode())
    for finder in get_finders():
        for name, storage in finder.list(ignore_patterns=None):
            stat = (storage.path(name), storage.size(name))
            digest.update(f"{stat} {storage.get_modified_time(name)}\n".encode())
    return digest.hexdigest()

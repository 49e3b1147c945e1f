"""The hashed and compressed copies of static files, made anew only when a source or
Django itself changed: they take longer than the rest of a second start."""

from __future__ import annotations

import hashlib
import io

import django
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

from .layout import Layout


def collect(here: Layout) -> None:
    """Bring `STATE/static` up to date."""
    stamp = here.state / "static.stamp"
    found = _sources()
    if stamp.exists() and stamp.read_text() == found:
        return
    stamp.unlink(missing_ok=True)
    call_command("collectstatic", interactive=False, clear=True, stdout=io.StringIO())
    stamp.write_text(found)


def _sources() -> str:
    """Changes when a file was added, changed or removed."""
    seen = hashlib.sha256(f"{django.__version__} {settings.STATIC_ROOT}".encode())
    for finder in get_finders():
        for name, storage in finder.list(ignore_patterns=None):
            stat = (storage.path(name), storage.size(name))
            seen.update(f"{stat} {storage.get_modified_time(name)}\n".encode())
    return seen.hexdigest()

"""Checks that the database and `STATE` can be written to, for /readyz."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection
from psycopg.errors import DiskFull
from structlog.stdlib import get_logger

CACHED_S = 5.0  # validity of a result: anybody may request /readyz
STATE_BYTES = 64 * 1024
DISK_FULL_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT})
# A sort larger than work_mem writes a few MiB of temporary files to the database's disk
# without changing a table or a catalogue. The three statements are sent as one message,
# so they are one transaction and the settings end with it.
_SORT = """
SET LOCAL work_mem = '64kB';
SET LOCAL temp_tablespaces = '';
SELECT count(*) FROM (
    SELECT md5(n::text) AS text FROM generate_series(1, 40000) AS n ORDER BY 1
) AS sorted
"""

log = get_logger(__name__)


class _CachedState:
    """The last result, and the monotonic time until which it is valid."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.text, self.until = "ok", 0.0


_last_state = _CachedState()


def describe_disk() -> str:
    """Return "ok", or what cannot be written. Cached for `CACHED_S` seconds."""
    with _last_state.lock:
        if time.monotonic() >= _last_state.until:
            _last_state.text = probe_disk()
            _last_state.until = time.monotonic() + CACHED_S
        return _last_state.text


def probe_disk() -> str:
    """The same, checked now without the cache; logs what fails."""
    problems = [text for text in (_probe_database(), _probe_state_folder()) if text]
    if problems:
        log.error("disk", found=problems)
    return "; ".join(problems) or "ok"


def _probe_database() -> str:
    """Check the database's disk. An unreachable database is not reported here: readyz
    checks that itself."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(_SORT)
    except DatabaseError as error:
        full = isinstance(error.__cause__, DiskFull)
        return "the database's disk is full" if full else ""
    return ""


def _probe_state_folder() -> str:
    file = Path(settings.COUNTERSEAL.state) / f".probe-{os.getpid()}"
    try:
        with file.open("wb") as probe:
            probe.write(bytes(STATE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        full = error.errno in DISK_FULL_ERRORS
        return "the disk of STATE is full" if full else "STATE cannot be written"
    finally:
        file.unlink(missing_ok=True)
    return ""

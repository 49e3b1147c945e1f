"""Whether something can be written where the database writes, and in `STATE`."""

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

KEEP_S = 5.0  # an answer holds so long: anybody may ask /readyz
STATE_BYTES = 64 * 1024
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
# Sorting more than fits into memory writes a few MiB of temporary files where the
# database's own are: neither a row nor a catalogue grows by it. One message of three
# statements is one transaction, which the settings end with.
_SORT = """
SET LOCAL work_mem = '64kB';
SET LOCAL temp_tablespaces = '';
SELECT count(*) FROM (
    SELECT md5(n::text) AS text FROM generate_series(1, 40000) AS n ORDER BY 1
) AS sorted
"""

log = get_logger(__name__)


class _Answer:
    """The last one, and until when it holds."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.text, self.until = "ok", 0.0


_answer = _Answer()


def state() -> str:
    """ "ok", or what cannot be written; a few seconds old at most."""
    with _answer.lock:
        if time.monotonic() >= _answer.until:
            _answer.text = probe()
            _answer.until = time.monotonic() + KEEP_S
        return _answer.text


def probe() -> str:
    """The same, tried now."""
    found = [text for text in (_database(), _state()) if text]
    if found:
        log.error("disk", found=found)
    return "; ".join(found) or "ok"


def _database() -> str:
    """A database that cannot be reached is not said here: readyz asks that itself."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(_SORT)
    except DatabaseError as error:
        full = isinstance(error.__cause__, DiskFull)
        return "the database's disk is full" if full else ""
    return ""


def _state() -> str:
    file = Path(settings.HOLDPOINT.state) / f".probe-{os.getpid()}"
    try:
        with file.open("wb") as probe:
            probe.write(bytes(STATE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        full = error.errno in FULL
        return "the disk of STATE is full" if full else "STATE cannot be written"
    finally:
        file.unlink(missing_ok=True)
    return ""

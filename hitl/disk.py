"""Checks that the database and `STATE` can be written to, for /readyz."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection
from psycopg.errors import DiskFull
from structlog.stdlib import get_logger

STATE_BYTES = 64 * 1024
DISK_FULL_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT})
# A sort larger than work_mem writes some temporary files to the database's disk
# without changing a table or a catalogue. The three statements are sent as one message,
# so they are one transaction and the settings end with it.
_SORT = """
SET LOCAL work_mem = '64kB';
SET LOCAL temp_tablespaces = '';
SELECT count(*) FROM (
    SELECT md5(n::text) AS text FROM generate_series(1, 8000) AS n ORDER BY 1
) AS sorted
"""

log = get_logger(__name__)


def probe_disk() -> str:
    """ "ok", or what cannot be written; logs what fails."""
    problems = [text for text in (_probe_database(), probe_state_folder()) if text]
    if problems:
        log.error("disk", found=problems)
    return "; ".join(problems) or "ok"


def _probe_database() -> str:
    """Check the database's disk. An unreachable database is not reported here:
    `probes.describe_database` does that."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(_SORT)
    except DatabaseError as error:
        full = isinstance(error.__cause__, DiskFull)
        return "the database's disk is full" if full else ""
    return ""


def probe_state_folder() -> str:
    """Return what is wrong with writing to STATE, or an empty text."""
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

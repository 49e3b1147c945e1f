"""Waking whoever waits for news of something: by NOTIFY, which may be lost. Who listens
also looks by itself."""

from __future__ import annotations

import threading

from django.db import DatabaseError, connection, transaction
from structlog.stdlib import get_logger

from . import failpoints

CHANNEL = "holdpoint"  # LISTEN on it to hear of changes; the payload is the subject
_TELL = "SELECT pg_notify(%s, subject) FROM unnest(%s::text[]) AS subject"

logger = get_logger(__name__)


class _Announced(threading.local):
    """What this thread's transaction will tell of."""

    def __init__(self) -> None:
        self.subjects: set[str] = set()


_announced = _Announced()


def announce(*subjects: str) -> None:
    """Tell whoever listens on `CHANNEL`, after the commit and outside it, of each
    subject once, however often it was announced.

    NOTIFY inside a transaction costs 40 % of the commits at 16 threads (house.md).
    """
    if not any(_notify in hook for hook in connection.run_on_commit):
        _announced.subjects.clear()  # of a transaction that was rolled back
        _announced.subjects.update(subjects)
        transaction.on_commit(_notify)
    else:
        _announced.subjects.update(subjects)


def _notify() -> None:
    subjects = list(_announced.subjects)
    _announced.subjects.clear()
    failpoints.point("before_announce")
    try:
        with connection.cursor() as cursor:
            cursor.execute(_TELL, [CHANNEL, subjects])
    except DatabaseError as error:
        # What it tells of is committed; listeners also look by themselves.
        logger.warning("announce_failed", error=type(error).__name__)

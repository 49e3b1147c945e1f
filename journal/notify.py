"""Wake-ups after a commit, by PostgreSQL's NOTIFY, for pages and waiting calls.

A NOTIFY may be lost, so listeners also poll.
"""

from __future__ import annotations

import threading

from django.db import DatabaseError, connection, transaction
from structlog.stdlib import get_logger

from . import failpoints
from .statements import Statement

CHANNEL = "counterseal"  # the channel to LISTEN on; the payload is the subject
_NOTIFY = Statement(
    "SELECT pg_notify(%(channel)s, subject)"
    " FROM unnest(%(subjects)s::text[]) AS subject"
)

logger = get_logger(__name__)


class _PendingSubjects(threading.local):
    """The subjects that this thread's transaction announces after its commit."""

    def __init__(self) -> None:
        self.subjects: set[str] = set()


_pending = _PendingSubjects()


def name_caller(kind: str, name: str) -> str:
    """The subject of changes to what a caller may do: `agent:riley`, `person:u-1`."""
    return f"{kind}:{name}"


def announce(*subjects: str) -> None:
    """After the commit, and outside of the transaction, notify the listeners on
    `CHANNEL` of each subject once, however often it was announced.

    Measured: NOTIFY inside a transaction costs 40 % of the commits at 16 threads,
    because PostgreSQL commits such transactions one after another.
    """
    if not any(_send_notifications in hook for hook in connection.run_on_commit):
        _pending.subjects.clear()  # left over from a transaction that rolled back
        _pending.subjects.update(subjects)
        transaction.on_commit(_send_notifications)
    else:
        _pending.subjects.update(subjects)


def _send_notifications() -> None:
    subjects = list(_pending.subjects)
    _pending.subjects.clear()
    failpoints.point("before_announce")
    try:
        _NOTIFY.execute(channel=CHANNEL, subjects=subjects)
    except DatabaseError as error:
        # The change itself is committed, and listeners also poll.
        logger.warning("announce_failed", error=type(error).__name__)

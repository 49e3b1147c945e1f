"""The one clock: the database's, so that no application host's time decides."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.db.models import DateTimeField, Func
from django.utils import timezone


class ClockTimestamp(Func):
    """`clock_timestamp()` inside a query: the guard of every deadline."""

    function = "clock_timestamp"
    output_field = DateTimeField()


def now() -> datetime:
    """The wall time of the database at this statement, aware and in UTC.

    `clock_timestamp()`, not `now()`: the latter is the start of the transaction, and
    a decision that waited for a lock would be judged by a time that has passed.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        value: datetime = cursor.fetchone()[0]
    return value


def time_of_day(at: datetime | None) -> str:
    """The time of day and its zone: the reader's on a page, UTC elsewhere."""
    if at is None:
        return ""
    local = timezone.localtime(at)
    name = local.tzname() or ""
    # Where a zone has no letters of its own its name is the offset, like +03.
    return f"{local:%H:%M:%S} {name if name[:1].isalpha() else f'UTC{name}'}"

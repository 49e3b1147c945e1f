"""The one clock: the database's, so that no application host's time decides."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.db.models import DateTimeField, Func


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

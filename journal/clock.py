"""The one clock of the product: the database's, so that the application hosts' own
clocks never decide anything."""

from __future__ import annotations

from datetime import datetime

from django.db.models import DateTimeField, Func
from django.utils import timezone

from .statements import Statement

_NOW = Statement("SELECT clock_timestamp()")


class ClockTimestamp(Func):
    """`clock_timestamp()` inside a query, for comparing deadlines in SQL."""

    function = "clock_timestamp"
    output_field = DateTimeField()


def now() -> datetime:
    """The database's wall time at this statement, timezone-aware and in UTC.

    It uses `clock_timestamp()` because PostgreSQL's `now()` is the start of the
    transaction: a decision that waited for a lock would be compared with an old time.
    """
    value: datetime = _NOW.fetch_one()[0]
    return value


def format_time(at: datetime | None) -> str:
    """The time of day and its zone, such as `14:05:00 CET`; empty for None. The zone
    is Django's active one: the reader's on a page, UTC elsewhere."""
    if at is None:
        return ""
    local = timezone.localtime(at)
    name = local.tzname() or ""
    # A zone without an abbreviation is named by its offset, such as +03.
    return f"{local:%H:%M:%S} {name if name[:1].isalpha() else f'UTC{name}'}"

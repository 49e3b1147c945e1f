"""The one clock of the product: the database's, so that the application hosts' own
clocks never decide anything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from django.db.models import DateTimeField, Func
from django.utils import timezone

from .statements import Statement

_NOW = Statement("SELECT clock_timestamp()")
# A time that a person or a program gives lies between these. Every zone has them, and
# a lifetime may be added to or taken from them.
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LATEST = datetime(2101, 1, 1, tzinfo=UTC)
# What the API's description says of each time; `format_instant` writes them.
TIMESTAMP_RULE = "RFC 3339, in UTC with milliseconds: 2026-11-27T14:05:00.000Z"
YEARS_RULE = f"must be from {EARLIEST.year} to {LATEST.year - 1}"


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


def is_usable(at: datetime) -> bool:
    """Whether a timezone-aware time is in the years that the product handles."""
    return EARLIEST <= at < LATEST


def check_usable(at: datetime) -> datetime:
    """Return a timezone-aware time unchanged. Raises ValueError for a time outside the
    years that the product handles."""
    if not is_usable(at):
        raise ValueError(f"the year {YEARS_RULE}; choose another time")
    return at


def clamp(at: datetime) -> datetime:
    """The nearest timezone-aware time in the years that the product handles."""
    return min(max(at, EARLIEST), LATEST - timedelta(seconds=1))


def to_zone(at: datetime, zone: tzinfo | None = None) -> datetime:
    """The time in `zone`, by default the reader's. A time at an end of the calendar
    that has no counterpart there stays in its own zone."""
    try:
        return timezone.localtime(at, zone)
    except OverflowError:
        return at


def format_instant(at: datetime) -> str:
    """A time as the API and the webhooks write it: RFC 3339 in UTC, with milliseconds,
    such as `2026-11-27T14:05:00.000Z`."""
    utc = to_zone(at, UTC)
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_time(at: datetime | None) -> str:
    """The time of day and its zone, such as `14:05:00 CET`; empty for None. The zone
    is Django's active one: the reader's on a page, UTC elsewhere."""
    if at is None:
        return ""
    local = to_zone(at)
    name = local.tzname() or ""
    # A zone without an abbreviation is named by its offset, such as +03.
    return f"{local:%H:%M:%S} {name if name[:1].isalpha() else f'UTC{name}'}"

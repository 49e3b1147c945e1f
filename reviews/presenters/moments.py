"""Moments as agents and readers write them: ISO 8601, parsed strictly. Pure."""

from __future__ import annotations

import re
from datetime import MAXYEAR, UTC, date, datetime, timedelta

_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?"
)
_DAY = re.compile(r"(?!0001|9999)\d{4}-\d\d-\d\d")


def parse_moment(text: str) -> datetime | None:
    """Parse a moment; it has an offset only if the text names one. None for other
    texts."""
    if not _MOMENT.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def format_in_utc(text: str) -> str:
    """Format a moment with an offset in UTC, with its weekday; empty for other
    texts."""
    at = parse_moment(text)
    if at is None or at.tzinfo is None:
        return ""
    try:
        return f"{at.astimezone(UTC):%A %Y-%m-%d %H:%M} UTC"
    except OverflowError:
        return ""


def parse_exact_moment(text: str) -> datetime | date | None:
    """Parse a text that is exactly a day, or a moment with an offset. None for other
    texts, and for a fraction of a second, which is lost in words."""
    if _DAY.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            return None
    at = parse_moment(text)
    return None if at is None or at.microsecond else _to_utc(at)


def parse_whole_second(text: str) -> datetime | None:
    """Parse a moment with an offset and drop fractions of a second; None for others."""
    at = parse_moment(text)
    return _to_utc(at.replace(microsecond=0)) if at else None


def _to_utc(at: datetime) -> datetime | None:
    """None without an offset, and at both ends of the calendar, where a moment does not
    exist in every zone."""
    named = at.tzinfo is not None and 1 < at.year < MAXYEAR
    return at.astimezone(UTC) if named else None


def format_moment(at: datetime | date) -> str:
    """Write a moment or a day in words: `16:29:18 UTC, 23 November 2026`."""
    day = f"{at.day} {at:%B} {at.year}"
    return f"{at:%H:%M:%S} UTC, {day}" if isinstance(at, datetime) else day


def describe_distance(at: datetime | date, read: datetime, *, is_end: bool) -> str:
    """Describe how long before or after `read`, the time of the reading, a moment lies;
    with `is_end` whether the period is over. Empty while a day is today somewhere on
    Earth."""
    begins, ends = (at, at) if isinstance(at, datetime) else _compute_day_bounds(at)
    if read >= ends:
        ago = _format_duration(read - ends)
        ended = "ended " if is_end else ""
        return f"{ended}{ago} before it was read"
    if read < begins:
        ahead = _format_duration(begins - read)
        return f"{ahead} left when read" if is_end else f"{ahead} after it was read"
    return ""


def _compute_day_bounds(day: date) -> tuple[datetime, datetime]:
    """Where the day begins first, at UTC+14, and where it ends last, at UTC-12."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return midnight - timedelta(hours=14), midnight + timedelta(hours=36)


_YEAR = 31_557_600  # seconds; a quarter of a day more than 365 days


def _format_duration(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    if seconds >= 2 * _YEAR:
        return f"{seconds // _YEAR:,} years"
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if number := seconds // size:
            return f"{number:,} {unit}{'' if number == 1 else 's'}"
    return "less than a minute"

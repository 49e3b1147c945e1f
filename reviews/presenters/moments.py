"""Moments as agents and readers write them: ISO 8601, read strictly. Pure."""

from __future__ import annotations

import re
from datetime import MAXYEAR, UTC, date, datetime, timedelta

_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?"
)
_DAY = re.compile(r"(?!0001|9999)\d{4}-\d\d-\d\d")


def read(text: str) -> datetime | None:
    """The moment, with an offset when it names one; None when it is none."""
    if not _MOMENT.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def in_utc(text: str) -> str:
    """A moment with an offset, in UTC and with its weekday; empty for other texts."""
    at = read(text)
    if at is None or at.tzinfo is None:
        return ""
    try:
        return f"{at.astimezone(UTC):%A %Y-%m-%d %H:%M} UTC"
    except OverflowError:
        return ""


def known(text: str) -> datetime | date | None:
    """The moment with an offset, or the day, that a text is and nothing besides; None
    where some of it would be lost when it is said in words."""
    if _DAY.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            return None
    at = read(text)
    return None if at is None or at.microsecond else _in_every_zone(at)


def read_to_the_second(text: str) -> datetime | None:
    """The moment with an offset, without a fraction of its second; None for others."""
    at = read(text)
    return _in_every_zone(at.replace(microsecond=0)) if at else None


def _in_every_zone(at: datetime) -> datetime | None:
    """In UTC, where it has an offset and exists in every zone: at both ends of the
    calendar some moments do not."""
    named = at.tzinfo is not None and 1 < at.year < MAXYEAR
    return at.astimezone(UTC) if named else None


def in_words(at: datetime | date) -> str:
    """`16:29:18 UTC, 23 November 2026`, or the day alone."""
    day = f"{at.day} {at:%B} {at.year}"
    return f"{at:%H:%M:%S} UTC, {day}" if isinstance(at, datetime) else day


def against(at: datetime | date, read: datetime, *, is_end: bool) -> str:
    """Where it lies from the moment that it was read at; of an `is_end`, whether that
    is over. Empty while a day is today somewhere."""
    begins, ends = (at, at) if isinstance(at, datetime) else _everywhere(at)
    if read >= ends:
        ago = _long(read - ends)
        ended = "ended " if is_end else ""
        return f"{ended}{ago} before it was read"
    if read < begins:
        ahead = _long(begins - read)
        return f"{ahead} left when read" if is_end else f"{ahead} after it was read"
    return ""


def _everywhere(day: date) -> tuple[datetime, datetime]:
    """From where the day begins first, at UTC+14, to where it ends last, at UTC-12."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return midnight - timedelta(hours=14), midnight + timedelta(hours=36)


def _long(span: timedelta) -> str:
    """`12 days`, in the largest unit that fits; what is left of it is not said."""
    seconds = int(span.total_seconds())
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if number := seconds // size:
            return f"{number:,} {unit}{'' if number == 1 else 's'}"
    return "less than a minute"

"""Moments as agents write them: ISO 8601, read strictly. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?"
)


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

"""Durations and calendars of opening hours in a policy document. Pure."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
)

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"([0-9]{1,9})([smhd])")
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])|24:00")

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def parse_duration(value: Any) -> timedelta:
    """Parse a whole number with a unit, such as `90s`, `30m`, `24h` or `7d`. A
    timedelta is returned as it is. Raises ValueError."""
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise ValueError("write a duration such as 90s, 30m, 24h or 7d")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2]])


def format_duration(value: timedelta) -> str:
    """The duration in seconds, such as `1800s`, which every release reads alike."""
    return f"{int(value.total_seconds())}s"


# Unit names, singular and plural, and their length in seconds.
_UNIT_NAMES = (
    ("year", "years", 365 * 86_400),
    ("day", "days", 86_400),
    ("h", "h", 3600),
    ("min", "min", 60),
    ("s", "s", 1),
)


def describe_duration(value: timedelta) -> str:
    """The duration for people: `24 h`, `7 days`, `10 years`. It uses the largest unit
    of which the duration is a whole number, but hours up to two days."""
    seconds = int(value.total_seconds())
    if seconds <= 2 * 86_400 and seconds % 3600 == 0:
        return f"{seconds // 3600} h"
    unit, units, size = next(row for row in _UNIT_NAMES if seconds % row[2] == 0)
    number = seconds // size
    return f"{number:,} {unit if number == 1 else units}"


def _check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise ValueError("this is not a time zone such as Europe/Berlin") from None
    return name


def _check_clock(value: Any) -> Any:
    # YAML 1.1 parses 18:00 without quotes as the number 1080.
    if not isinstance(value, str) or not _CLOCK.fullmatch(value):
        raise ValueError('write a time of day in quotes, such as "08:00" or "24:00"')
    return value


Duration = Annotated[
    timedelta, BeforeValidator(parse_duration), PlainSerializer(format_duration)
]
Zone = Annotated[str, AfterValidator(_check_zone)]
Clock = Annotated[str, BeforeValidator(_check_clock)]


class Opening(BaseModel):
    """Opening hours on some days of the week. Where `to` is at or before `from`, the
    hours end on the next day."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True)

    days: list[Weekday] = Field(min_length=1)
    opens: Clock = Field(alias="from")
    closes: Clock = Field(alias="to")

    def covers(self, day: str, minute: int) -> bool:
        """Whether the hours that begin on `day` cover this minute, counted from that
        day's midnight. Minutes from 1440 on are on the following day."""
        start, end = _to_minutes(self.opens), _to_minutes(self.closes)
        if end <= start:
            end += 1440
        return day in self.days and start <= minute < end


class Calendar(BaseModel):
    """Weekly opening hours in one time zone. No hours begin on a holiday."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    zone: Zone
    open: list[Opening]
    holidays: list[date] = []

    def is_open(self, at: datetime) -> bool:
        """Whether the calendar is open at this timezone-aware time. Hours that began
        the day before a holiday run to their end."""
        local = at.astimezone(ZoneInfo(self.zone))
        minute = local.hour * 60 + local.minute
        today, yesterday = local.date(), local.date() - timedelta(days=1)
        return self._began(today, minute) or self._began(yesterday, minute + 1440)

    def _began(self, day: date, minute: int) -> bool:
        if day in self.holidays:
            return False
        name = WEEKDAYS[day.weekday()]
        return any(hours.covers(name, minute) for hours in self.open)


def build_clock_facts(at: datetime, zone: str) -> dict[str, Any]:
    """The hour, minute and weekday in the policy's zone, for rules on `clock`."""
    local = at.astimezone(ZoneInfo(zone))
    return {
        "hour": local.hour,
        "minute": local.minute,
        "weekday": WEEKDAYS[local.weekday()],
    }


def _to_minutes(time: str) -> int:
    hours, minutes = time.split(":")
    return int(hours) * 60 + int(minutes)

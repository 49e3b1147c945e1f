"""Opening hours in their own zone, over midnight, holidays and clock changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from policies.calendars import (
    Calendar,
    build_clock_facts,
    format_duration,
    parse_duration,
)

BERLIN = "Europe/Berlin"


def calendar(opens="08:00", closes="18:00", days=("mon",), **more):
    hours = {"days": list(days), "from": opens, "to": closes}
    return Calendar.model_validate({"zone": BERLIN, "open": [hours], **more})


def at(day, hour, minute=0):
    """A time of November 2026 in Berlin, where the 16th is a Monday."""
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC) - timedelta(hours=1)


def test_it_opens_and_closes_to_the_minute():
    weekday = calendar()
    assert not weekday.is_open(at(16, 7, 59))
    assert weekday.is_open(at(16, 8, 0))
    assert weekday.is_open(at(16, 17, 59))
    assert not weekday.is_open(at(16, 18, 0))
    assert not weekday.is_open(at(17, 12))


def test_hours_may_pass_midnight_and_belong_to_the_day_they_began():
    night = calendar("22:00", "06:00", holidays=["2026-11-23"])
    assert night.is_open(at(16, 23))
    assert night.is_open(at(17, 5, 59))
    assert not night.is_open(at(17, 6))
    assert not night.is_open(at(16, 5))
    assert not night.is_open(at(23, 23))
    assert not night.is_open(at(24, 5))


def test_a_whole_day_ends_at_24():
    always = calendar("00:00", "24:00", days=["mon", "tue"])
    assert always.is_open(at(16, 0))
    assert always.is_open(at(17, 23, 59))
    assert not always.is_open(at(18, 0))


def test_nothing_opens_on_a_holiday():
    assert not calendar(holidays=["2026-11-16"]).is_open(at(16, 12))


def test_hours_are_local_on_both_sides_of_a_clock_change():
    every_day = calendar(days=["sat", "sun"])
    summer, winter = datetime(2026, 10, 24, 6, tzinfo=UTC), timedelta(days=1)
    assert every_day.is_open(summer)
    assert not every_day.is_open(summer - timedelta(minutes=1))
    assert not every_day.is_open(summer + winter)
    assert every_day.is_open(summer + winter + timedelta(hours=1))


def test_no_hours_are_never_open():
    assert not Calendar(zone="UTC", open=[]).is_open(at(16, 12))


def test_the_clock_is_of_the_zone():
    assert build_clock_facts(at(16, 0, 30), BERLIN) == {
        "hour": 0,
        "minute": 30,
        "weekday": "mon",
    }
    assert build_clock_facts(at(16, 0, 30), "UTC") == {
        "hour": 23,
        "minute": 30,
        "weekday": "sun",
    }


@pytest.mark.parametrize("zone", ["Mars/Base", "", "../etc/passwd", "/etc/passwd"])
def test_an_unknown_zone_is_refused(zone):
    with pytest.raises(ValidationError, match="not a time zone"):
        Calendar(zone=zone, open=[])


@pytest.mark.parametrize("time", [1080, "8:00", "24:30", "25:00", "noon", None])
def test_a_time_that_yaml_would_read_as_a_number_is_refused(time):
    with pytest.raises(ValidationError, match="in quotes"):
        calendar(opens=time)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("24h", 86400), ("7d", 604800)]
)
def test_durations_are_a_number_and_a_unit(text, seconds):
    assert parse_duration(text) == timedelta(seconds=seconds)
    assert parse_duration(format_duration(parse_duration(text))) == parse_duration(text)


@pytest.mark.parametrize("text", ["", "30", "m", "-1m", "1.5h", "1w", "1 h", 30, None])
def test_other_durations_are_refused(text):
    with pytest.raises(ValueError, match="90s, 30m, 24h or 7d"):
        parse_duration(text)

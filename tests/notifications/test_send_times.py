"""When a message goes out: no query, so every hour of the day is asked."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest

from notifications import send_times
from policies.choices import Risk, Role
from reviews.people.preferences import NotificationPreferences

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
NIGHT = NotificationPreferences(quiet_from=time(22), quiet_until=time(7))


def at(hour: int, minute: int = 0, day: int = 20) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


def due(
    said: NotificationPreferences, kind: str = "opened", *, must: bool = False, now=NOON
):
    return send_times.compute_send_time(said, kind, "high", must=must, now=now)


def test_by_default_it_goes_at_once() -> None:
    assert due(NotificationPreferences()) == send_times.SendTime(NOON)


def test_never_is_never_but_for_what_must_be_told() -> None:
    said = NotificationPreferences(email={Risk.HIGH: "never"})
    assert due(said) is None
    assert due(said, "escalated", must=True) == send_times.SendTime(NOON)


def test_only_a_supervisor_must_be_told() -> None:
    assert send_times.is_mandatory("escalated", Role.SUPERVISOR)
    assert send_times.is_mandatory("due_soon", Role.SUPERVISOR)
    assert not send_times.is_mandatory("opened", Role.SUPERVISOR)
    assert not send_times.is_mandatory("due_soon", Role.REVIEWER)


def test_what_nobody_has_taken_waits_its_minutes() -> None:
    said = NotificationPreferences(email={Risk.HIGH: "unclaimed"}, minutes=15)
    assert due(said) == send_times.SendTime(NOON + timedelta(minutes=15))
    assert due(said, "due_soon") == send_times.SendTime(NOON)  # later is too late


def test_a_digest_gathers_until_its_hour() -> None:
    said = NotificationPreferences(email={Risk.HIGH: "digest"}, digest_at=time(8))
    assert due(said) == send_times.SendTime(at(8, day=21), digest=True)
    early = send_times.compute_send_time(
        said, "opened", "high", must=False, now=at(7, 59)
    )
    assert early == send_times.SendTime(at(8), digest=True)


def test_reminders_at_half_time_wait_for_each_other_up_to_a_minute() -> None:
    late = NOON + timedelta(seconds=42)
    assert due(NotificationPreferences(), "half_time", now=late) == send_times.SendTime(
        NOON + timedelta(minutes=1), digest=True
    )


@pytest.mark.parametrize(
    ("now", "until"),
    [
        (at(21, 59), None),
        (at(22), at(7, day=21)),
        (at(3), at(7)),
        (at(6, 59), at(7)),
        (at(7), None),
    ],
)
def test_quiet_hours_reach_over_midnight(now: datetime, until: datetime | None) -> None:
    assert send_times.find_quiet_end(NIGHT, now) == until
    assert send_times.find_quiet_end(NotificationPreferences(), now) is None


def test_quiet_hours_are_of_their_own_zone() -> None:
    said = NotificationPreferences(
        quiet_from=time(12, 30), quiet_until=time(13, 30), zone="Europe/Berlin"
    )
    assert send_times.find_quiet_end(said, NOON) == at(
        12, 30
    )  # one hour ahead in November


def test_on_call_goes_before_quiet_hours_for_what_must_be_told() -> None:
    midnight, morning = at(0), send_times.SendTime(at(7), digest=True)
    held, woken = NIGHT, NIGHT.model_copy(update={"on_call": True})
    assert due(held, "escalated", must=True, now=midnight) == morning
    assert due(woken, "escalated", must=True, now=midnight) == send_times.SendTime(
        midnight
    )
    assert due(woken, "opened", now=midnight) == morning

"""When a notice is sent: at once, later, or in a digest.

The reader's preferences decide, with quiet hours and a number of messages an hour.
What concerns a supervisor's responsibility cannot be muted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.db.models import Count, Min
from django.db.models.functions import Now

from journal.prepared_queries import Parameter, PreparedQuery
from policies.choices import Role
from policies.models import Person
from reviews.models import Notice
from reviews.people import preferences
from reviews.people.preferences import NotificationPreferences

HOUR = timedelta(hours=1)
# Many requests can reach this step at the same time: one message for all of them.
GATHERED_KINDS = frozenset({"half_time"})
# Supervisors get these whatever their preferences: somebody must be responsible.
MANDATORY_KINDS = frozenset({"escalated", "due_soon"})


@dataclass(frozen=True, slots=True)
class SendTime:
    """When a notice is sent, and whether it waits for the digest mail of that time."""

    at: datetime
    digest: bool = False


def is_mandatory(kind: str, role: Role | None) -> bool:
    """Whether preferences cannot mute the notice, only delay it by quiet hours."""
    return kind in MANDATORY_KINDS and role is Role.SUPERVISOR


def compute_send_time(
    prefs: NotificationPreferences,
    kind: str,
    risk: str,
    *,
    must: bool,
    now: datetime,
    channel: str = "email",
    on_call: bool = False,
) -> SendTime | None:
    """Compute when a notice is sent; None for never. Notices that quiet hours delay go
    into one digest at their end, and those of `GATHERED_KINDS` into one a minute.

    `on_call`: the reader has a shift now, in which quiet hours delay nothing of
    `MANDATORY_KINDS`. A supervisor's own preference does the same.
    """
    when = "now" if must else prefs.choose_timing(channel, risk)
    if when == "never":
        return None
    if when == "digest":
        return SendTime(compute_next_digest(prefs, now), digest=True)
    wait = timedelta(minutes=prefs.minutes)
    at = now + wait if when == "unclaimed" and kind == "opened" else now
    woken = (must and prefs.on_call) or (on_call and kind in MANDATORY_KINDS)
    held = None if woken else find_quiet_end(prefs, at)
    if held:
        return SendTime(held, digest=True)
    if kind in GATHERED_KINDS:
        return SendTime(_compute_next_minute(at), digest=True)
    return SendTime(at)


def _compute_next_minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0) + timedelta(minutes=1)


def find_quiet_end(prefs: NotificationPreferences, at: datetime) -> datetime | None:
    """The end of the reader's quiet hours if `at` is within them, else None."""
    begin, end = prefs.quiet_from, prefs.quiet_until
    if begin is None or end is None or begin == end:
        return None
    local = at.astimezone(ZoneInfo(prefs.zone))
    now = local.time()
    within = begin <= now < end if begin < end else now >= begin or now < end
    return _compute_next_time(local, end) if within else None


def compute_next_digest(prefs: NotificationPreferences, at: datetime) -> datetime:
    """The next time of this person's daily digest."""
    return _compute_next_time(at.astimezone(ZoneInfo(prefs.zone)), prefs.digest_at)


def _compute_next_time(local: datetime, at: time) -> datetime:
    """The next time, after `local`, at which its wall clock shows `at`."""
    today_at = local.replace(hour=at.hour, minute=at.minute, second=0, microsecond=0)
    return today_at if today_at > local else today_at + timedelta(days=1)


# Of each person: how many messages they had on a channel within the hour, and when the
# first.
_MESSAGES_OF_HOUR = PreparedQuery(
    lambda: (
        Notice.objects.filter(
            person__any=Parameter("people"),
            channel=Parameter("channel"),
            sent_at__gt=Now() - HOUR,
        )
        .values_list("person")
        .annotate(count=Count("sent_at", distinct=True), first=Min("sent_at"))
    )
)


def compute_full_until(people: Collection[Person], channel: str) -> dict[int, datetime]:
    """For each person who has had their messages of this hour on the channel: when they
    may get the next one, by primary key. One query. Notices sent at the same moment
    were one message."""
    rows = _MESSAGES_OF_HOUR.fetch_all(
        people=[person.pk for person in people], channel=channel
    )
    had = {pk: (count, first) for pk, count, first in rows}
    full = {}
    for person in people:
        prefs: NotificationPreferences = preferences.load_preferences(
            person
        ).notifications
        count, first = had.get(person.pk, (0, None))
        if first is not None and count >= prefs.per_hour:
            room = first + HOUR
            full[person.pk] = find_quiet_end(prefs, room) or room
    return full

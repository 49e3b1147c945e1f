"""When a notice is sent, by its reader's preferences. Pure: no query, no clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from policies.choices import Role
from reviews.people.preferences import NotificationPreferences

# Supervisors get these whatever their preferences: somebody must be responsible.
MANDATORY_KINDS = frozenset({"escalated", "due_soon"})
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class SendTime:
    """When a notice is sent, and whether it waits for the digest mail of that time."""

    at: datetime
    digest: bool = False


def is_mandatory(kind: str, role: Role | None) -> bool:
    """Whether preferences cannot mute the notice, only delay it by quiet hours."""
    return kind in MANDATORY_KINDS and role is Role.SUPERVISOR


def compute_send_time(
    said: NotificationPreferences, kind: str, risk: str, *, must: bool, now: datetime
) -> SendTime | None:
    """Compute when a notice is sent; None for never. Notices that quiet hours delay go
    into one digest mail at their end."""
    when = "now" if must else said.mail(risk)
    if when == "never":
        return None
    if when == "digest":
        return SendTime(compute_next_digest(said, now), digest=True)
    wait = timedelta(minutes=said.minutes)
    at = now + wait if when == "unclaimed" and kind == "opened" else now
    held = None if must and said.on_call else find_quiet_end(said, at)
    return SendTime(held, digest=True) if held else SendTime(at)


def find_quiet_end(said: NotificationPreferences, at: datetime) -> datetime | None:
    """The end of the reader's quiet hours if `at` is within them, else None."""
    begin, end = said.quiet_from, said.quiet_until
    if begin is None or end is None or begin == end:
        return None
    local = at.astimezone(ZoneInfo(said.zone))
    now = local.time()
    within = begin <= now < end if begin < end else now >= begin or now < end
    return _compute_next_time(local, end) if within else None


def compute_next_digest(said: NotificationPreferences, at: datetime) -> datetime:
    """The next time of this person's daily digest."""
    return _compute_next_time(at.astimezone(ZoneInfo(said.zone)), said.digest_at)


def _compute_next_time(local: datetime, clock: time) -> datetime:
    """The next time, after `local`, at which its wall clock shows `clock`."""
    found = local.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
    return found if found > local else found + DAY

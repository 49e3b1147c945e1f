"""When a message goes out, by what its reader chose. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from policies.choices import Role
from reviews.people.preferences import Notifications

# Somebody has to answer for these: a supervisor hears of them whatever they chose.
MUST = frozenset({"escalated", "due_soon"})
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Due:
    """When it goes, and whether as one mail with the others that are due then."""

    at: datetime
    digest: bool = False


def must(kind: str, role: Role | None) -> bool:
    """Whether this may be delayed by quiet hours at most, never muted."""
    return kind in MUST and role is Role.SUPERVISOR


def due(
    said: Notifications, kind: str, risk: str, *, must: bool, now: datetime
) -> Due | None:
    """None for never. What quiet hours hold back is read at once, when they end."""
    when = "now" if must else said.mail(risk)
    if when == "never":
        return None
    if when == "digest":
        return Due(next_digest(said, now), digest=True)
    wait = timedelta(minutes=said.minutes)
    at = now + wait if when == "unclaimed" and kind == "opened" else now
    held = None if must and said.on_call else quiet_until(said, at)
    return Due(held, digest=True) if held else Due(at)


def quiet_until(said: Notifications, at: datetime) -> datetime | None:
    """The end of the quiet hours that hold at a moment, or None outside of them."""
    begin, end = said.quiet_from, said.quiet_until
    if begin is None or end is None or begin == end:
        return None
    local = at.astimezone(ZoneInfo(said.zone))
    now = local.time()
    within = begin <= now < end if begin < end else now >= begin or now < end
    return _next(local, end) if within else None


def next_digest(said: Notifications, at: datetime) -> datetime:
    """The next time of day at which this person reads what was gathered."""
    return _next(at.astimezone(ZoneInfo(said.zone)), said.digest_at)


def _next(local: datetime, clock: time) -> datetime:
    """The next time that a wall clock there shows this."""
    found = local.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
    return found if found > local else found + DAY

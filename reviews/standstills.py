"""Whether approved actions are executed and sweeps run. The web process asks, because a
worker that stands still cannot say so, and compares by the database's clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction

from journal import clock, heartbeats, restore_epochs

from . import deadlines, locks
from .alarms import standing
from .choices import AlarmKind
from .models import Alarm
from .models.alarms import STANDING

EFFECTS, SWEEPS = "effects", "sweeps"  # what an alarm is about
# Through the queue of effects: the sweep that only shows that it is served, and what
# performs an effect.
PULSE = "reviews.tasks.pulse_effects"
PERFORM = ("reviews.tasks.execute", "reviews.tasks.run_execution")
FOR_EVER = float("inf")


@dataclass
class Known:
    """What `look` found last in this process, for its pages: they need not ask."""

    # Seconds for which no effect was taken up; 0 while all is well.
    effects: float = 0
    # The sweeps that are late, and whether that is all of them.
    sweeps: tuple[str, ...] = ()
    every_sweep: bool = False

    @property
    def effects_for(self) -> str:
        """In the words of the page."""
        minutes = int(self.effects // 60)
        if minutes < 2:
            return f"{self.effects:.0f} seconds"
        return f"{minutes} minutes"


known = Known()


def look(*, periods: Mapping[str, float], uptime: float) -> Known:
    """Compare, remember it for this process, and raise or close the alarms.

    `periods` has the seconds between two runs of each sweep, `uptime` the seconds since
    this process began to look: nothing is late for longer than that, so that everything
    may start together, and a sweep of once an hour runs for the first time in an hour.
    Caller holds no transaction.
    """
    ages, limit = heartbeats.ages(), float(settings.HOLDPOINT.standstill_seconds)
    effects, stale = late_effects(ages, limit), late_sweeps(ages, periods, limit)
    seen = {name: min(ages.get(name, FOR_EVER), uptime) for name in periods}
    quick = {name for name, period in periods.items() if _most(period, limit) == limit}
    known.effects = min(effects, uptime) if uptime > limit else 0
    known.sweeps = late_sweeps(seen, periods, limit)
    known.every_sweep = quick <= set(known.sweeps)
    _say_effects(late=bool(known.effects), stale=bool(effects))
    _say_sweeps(late=known.sweeps, stale=stale)
    return known


def late_sweeps(
    ages: Mapping[str, float], periods: Mapping[str, float], limit: float
) -> tuple[str, ...]:
    """Those that did not run to their end for `limit` seconds, or three times in a row
    where they are rare."""
    return tuple(
        name
        for name, period in periods.items()
        if ages.get(name, FOR_EVER) > _most(period, limit)
    )


def _most(period: float, limit: float) -> float:
    return max(limit, 3 * period)


def late_effects(ages: Mapping[str, float], limit: float) -> float:
    """Seconds for which nothing was taken from the queue of effects, or no effect was
    performed while some are due; 0 when that is less than `limit`."""
    performed = min(ages.get(name, FOR_EVER) for name in PERFORM)
    served = min(performed, ages.get(PULSE, FOR_EVER))
    if served > limit:
        return served
    if performed <= limit or restore_epochs.known.why:
        return 0
    oldest = deadlines.oldest_due(quiet=timedelta(seconds=limit))
    return (clock.now() - oldest).total_seconds() if oldest else 0


def _say_effects(*, late: bool, stale: bool) -> None:
    stands = _standing(EFFECTS) is not None
    if late and not stands:
        tell(subject=EFFECTS, late=True, data={})
    elif stands and not stale:
        tell(subject=EFFECTS, late=False, data={})


def _say_sweeps(*, late: Sequence[str], stale: Sequence[str]) -> None:
    """A process that has just begun to look closes no alarm of another: what that one
    is about must have run."""
    alarm = _standing(SWEEPS)
    if late and alarm is None:
        tell(subject=SWEEPS, late=True, data={"sweeps": list(late)})
    elif alarm is not None and not late and not {*alarm.data["sweeps"]} & {*stale}:
        tell(subject=SWEEPS, late=False, data={})


def _standing(subject: str) -> Alarm | None:
    found = Alarm.objects.filter(STANDING, kind=AlarmKind.STANDSTILL, subject=subject)
    return found.first()


@transaction.atomic(durable=True)
def tell(*, subject: str, late: bool, data: Mapping[str, object]) -> None:
    """Raise the alarm about effects or sweeps, or let it close itself; once, however
    many processes notice."""
    now, kind = clock.now(), AlarmKind.STANDSTILL
    if not late:
        standing.close_itself(kind, subject=subject, now=now, code="running")
    elif locks.standing_alarm(kind, subject) is None:
        standing.raise_(kind, subject=subject, proposal=None, data=data, now=now)

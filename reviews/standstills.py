"""Detection of standstills: approved actions are not executed, sweeps do not run, or an
open transaction holds the log back.

The web process checks, because a stuck worker cannot report itself. Ages are measured
by the database's clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings

from journal import clock, heartbeats, restore_epochs, sequencer
from journal.operations import operation
from journal.sequencer import MOST_COUNTED, LogDelay

from . import deadlines, locks
from .alarms import standing
from .choices import AlarmKind
from .models import Alarm
from .models.alarms import STANDING

EFFECTS, SWEEPS, LOG = "effects", "sweeps", "log"  # the subjects of the alarms
# Tasks in the queue of effects: a sweep that only proves the queue is served, and the
# tasks that perform effects.
PULSE_TASK = "hitl.tasks.pulse_effects"
EFFECT_TASKS = ("hitl.tasks.execute", "hitl.tasks.run_execution")
NEVER_RAN = float("inf")


@dataclass
class StandstillState:
    """What `update_standstill_alarms` found last in this process, for its pages."""

    # Seconds for which no effect was started; 0 in normal operation.
    effects: float = 0
    # The late sweeps, and whether every frequent sweep is late.
    sweeps: tuple[str, ...] = ()
    every_sweep: bool = False
    # The records that an open transaction holds back.
    log: LogDelay | None = None

    @property
    def effects_for(self) -> str:
        return format_duration(self.effects)

    @property
    def log_waiting(self) -> str:
        count = self.log.waiting if self.log else 0
        return f"{count:,}{' or more' if count == MOST_COUNTED else ''}"

    @property
    def log_for(self) -> str:
        return format_duration(self.log.seconds) if self.log else ""

    @property
    def log_open_for(self) -> str:
        """How long the transaction has been open that holds the log back; empty when
        the database does not tell."""
        seconds = self.log.open_seconds if self.log else None
        return "" if seconds is None else format_duration(seconds)


def format_duration(seconds: float) -> str:
    minutes = int(seconds // 60)
    return f"{seconds:.0f} seconds" if minutes < 2 else f"{minutes} minutes"


known = StandstillState()


def update_standstill_alarms(
    *, periods: Mapping[str, float], uptime: float
) -> StandstillState:
    """Compare ages with limits, remember the result, and raise or close the alarms.

    `periods` holds the seconds between two runs of each sweep, `uptime` the seconds
    since this process began to check. Nothing counts as late for longer than `uptime`,
    so that a fresh start raises no alarm. The caller holds no transaction.
    """
    ages = heartbeats.compute_ages()
    limit = float(settings.COUNTERSEAL.standstill_seconds)
    effects = compute_effects_delay(ages, limit)
    stale = list_late_sweeps(ages, periods, limit)
    seen = {name: min(ages.get(name, NEVER_RAN), uptime) for name in periods}
    quick = {name for name, period in periods.items() if 3 * period <= limit}
    known.effects = min(effects, uptime) if uptime > limit else 0
    known.sweeps = list_late_sweeps(seen, periods, limit)
    known.every_sweep = quick <= set(known.sweeps)
    _update_effects_alarm(late=bool(known.effects), stale=bool(effects))
    _update_sweeps_alarm(late=known.sweeps, stale=stale)
    delay = sequencer.find_delay(limit)
    known.log = delay if delay is not None and delay.held_back else None
    _update_log_alarm(delay)
    return known


def list_late_sweeps(
    ages: Mapping[str, float], periods: Mapping[str, float], limit: float
) -> tuple[str, ...]:
    """Names of the sweeps that have not completed for too long. Too long is `limit`
    seconds or three periods, whichever is more. `ages` holds the seconds since each
    last completed."""
    return tuple(
        name
        for name, period in periods.items()
        if ages.get(name, NEVER_RAN) > max(limit, 3 * period)
    )


def compute_effects_delay(ages: Mapping[str, float], limit: float) -> float:
    """Seconds for which the effects queue was not served, or due effects did not run. 0
    when that is less than `limit` seconds, or while a restore halts everything."""
    performed = min(ages.get(name, NEVER_RAN) for name in EFFECT_TASKS)
    served = min(performed, ages.get(PULSE_TASK, NEVER_RAN))
    if served > limit:
        return served
    if performed <= limit or restore_epochs.last_status.why:
        return 0
    oldest = deadlines.find_oldest_due_at(quiet=timedelta(seconds=limit))
    return (clock.now() - oldest).total_seconds() if oldest else 0


def _update_effects_alarm(*, late: bool, stale: bool) -> None:
    stands = _find_standing_alarm(EFFECTS) is not None
    if late and not stands:
        raise_or_close_alarm(subject=EFFECTS, data={})
    elif stands and not stale:
        raise_or_close_alarm(subject=EFFECTS)


def _update_sweeps_alarm(*, late: Sequence[str], stale: Sequence[str]) -> None:
    """Raise or close the alarm about sweeps. It closes only when the sweeps it names
    have run, so that a process that has just started does not close an alarm that
    another one raised."""
    alarm = _find_standing_alarm(SWEEPS)
    if late and alarm is None:
        raise_or_close_alarm(subject=SWEEPS, data={"sweeps": list(late)})
    elif alarm is not None and not late and not {*alarm.data["sweeps"]} & {*stale}:
        raise_or_close_alarm(subject=SWEEPS)


def _update_log_alarm(delay: LogDelay | None) -> None:
    """Raise the alarm about the log, or close it.

    It closes when no record has waited for too long: after the transaction that held
    the log back has ended, the sequencer still has to catch up. A log that is late
    because no sweep runs has the alarm about sweeps.
    """
    kind = AlarmKind.LOG_STALLED
    stands = _find_standing_alarm(LOG, kind) is not None
    if delay is None and stands:
        raise_or_close_alarm(subject=LOG, kind=kind)
    elif delay is not None and delay.held_back and not stands:
        raise_or_close_alarm(subject=LOG, data=_build_delay_data(delay), kind=kind)


def _build_delay_data(delay: LogDelay) -> dict[str, object]:
    data: dict[str, object] = {
        "since": delay.since.isoformat(timespec="seconds"),
        "waiting": delay.waiting,
        "pid": delay.pid,
        "application": delay.application,
    }
    if delay.open_seconds is not None:
        data["open_seconds"] = round(delay.open_seconds)
    return {name: value for name, value in data.items() if value not in (None, "")}


def _find_standing_alarm(
    subject: str, kind: AlarmKind = AlarmKind.STANDSTILL
) -> Alarm | None:
    return Alarm.objects.filter(STANDING, kind=kind, subject=subject).first()


CLOSE_CODES = {
    AlarmKind.STANDSTILL: "running",
    AlarmKind.LOG_STALLED: "caught_up",
}


@operation(
    locks="alarm", writes="Alarm", logs="alarm.raised or alarm.closed", after="mail"
)
def raise_or_close_alarm(
    *,
    subject: str,
    data: Mapping[str, object] | None = None,
    kind: AlarmKind = AlarmKind.STANDSTILL,
) -> None:
    """Raise the alarm about effects, sweeps or the log, or close it where there is no
    `data`. Several processes may call this for the same standstill; it takes effect
    once."""
    now, code = clock.now(), CLOSE_CODES[kind]
    if data is None:
        standing.close_resolved_alarm(kind, subject=subject, now=now, code=code)
    elif locks.lock_standing_alarm(kind, subject) is None:
        standing.raise_alarm(kind, subject=subject, proposal=None, data=data, now=now)

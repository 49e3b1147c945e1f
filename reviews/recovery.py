"""Recovery after the database was restored from a backup.

A restore is detected and announced, everything halts, and a new epoch begins once two
people have confirmed it. The guard that halts everything is journal/restore_epochs.py.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from journal import (
    clock,
    failover,
    failpoints,
    high_water_mark,
    log,
    periods,
    restore_epochs,
)
from journal.errors import Conflict, TextMissing
from journal.models import Epoch
from journal.operations import operation
from policies import solo
from policies.models import Person
from policies.people import build_actor

from . import locks, permissions
from .alarms import standing
from .choices import AlarmKind, ExecutionStatus, RequestStatus
from .grants import uncertain
from .models import ApprovalRequest, Execution
from .roles import Permission
from .stops import incidents

# Known to everybody already, or nothing that a person has to confirm (yet).
SILENT_REASONS = {restore_epochs.TOLD, restore_epochs.DISK_ERROR, failover.WAITING}


def find_waiting_epoch() -> Epoch | None:
    """The epoch that waits for two people to begin it; None in normal operation."""
    return Epoch.objects.filter(began_at__isnull=True).order_by("-number").first()


def watch_for_restore() -> str:
    """Check whether the database was restored; return why nothing may run, or "". When
    only this host has detected a restore, it announces it to all other hosts. With
    FAILOVER=synchronous, a standby that took over without a loss is none."""
    why = restore_epochs.update_status()
    if why == restore_epochs.ANOTHER:
        why = _follow_promotion()
    if why and why not in SILENT_REASONS:
        announce_restore(why=why)
    if why == restore_epochs.UNREADABLE:
        high_water_mark.set_aside_corrupt_file()
    if not why and failover.is_enabled():
        failover.record_beat()
    return why


def _follow_promotion() -> str:
    """Go on on another timeline if nothing was lost. Return why nothing may run."""
    why = failover.examine_promotion()
    if why:
        return why
    record_promotion()
    failover.adopt_timeline()
    return restore_epochs.update_status()


@operation(
    locks="alarm",
    writes="Promotion, Alarm",
    logs="database.promoted, alarm.raised",
    after="the host's note in `$STATE/epoch`, mail",
)
def record_promotion() -> None:
    """Record that a standby took over without a loss, which lets every host go on, and
    tell people. Hosts that find it together share a row."""
    now = clock.now()
    promotion = failover.accept_promotion(now)
    if promotion is None:
        return
    facts = {
        "from_timeline": int(promotion.before, 16),
        "timeline": int(promotion.timeline, 16),
        "hosts": len(promotion.hosts),
    }
    log.append(
        "database.promoted",
        actor=uncertain.RESTORE_ACTOR,
        at=now,
        data={**facts, "record": promotion.record},
    )
    standing.raise_alarm(
        AlarmKind.PROMOTED,
        subject=f"timeline-{promotion.timeline}",
        proposal=None,
        data=facts,
        now=now,
        actor=uncertain.RESTORE_ACTOR,
    )


@operation(
    locks="alarm",
    writes="Epoch, Alarm",
    logs="epoch.noticed, alarm.raised",
    after="mail",
)
def announce_restore(*, why: str) -> None:
    """Halt every host and alert people. Hosts that see the same restore share a row."""
    now = clock.now()
    _record_restore(why, now)


def _record_restore(why: str, now: datetime) -> None:
    number = restore_epochs.compute_next_epoch()
    row = Epoch(number=number, noticed_at=now, why=why)
    if find_waiting_epoch() is not None:
        return
    Epoch.objects.bulk_create([row], ignore_conflicts=True)
    log.append(
        "epoch.noticed",
        actor=uncertain.RESTORE_ACTOR,
        at=now,
        data={"epoch": number, "code": why},
    )
    standing.raise_alarm(
        AlarmKind.RESTORED,
        subject=f"epoch-{number}",
        proposal=None,
        data={"code": why},
        now=now,
        actor=uncertain.RESTORE_ACTOR,
    )


@operation(
    locks="the periods (table), the log (SHARE), requests by id, grants and "
    "executions by id, alarm",
    writes="Epoch, LogPeriod, ApprovalRequest, Grant, Execution, Observation, "
    "Batch (halted), Alarm",
    logs="epoch.noticed, alarm.raised; epoch.asked, or log.period_began, epoch.began, "
    "execution.unknown and alarm.closed",
    after="the host's note in `$STATE/epoch`, mail, webhook, wake-up",
)
def confirm_restore(
    *, person: Person, reason: str, shown_asked: bool | None = None
) -> Epoch:
    """Confirm a restore: one person says what happened, a second begins the epoch. In
    solo mode one does both.
    `shown_asked` says whether the person read that a first one confirmed; None without
    a page.

    When the epoch begins, claimed executions become UNKNOWN, pending requests get their
    whole time again, and a new period of the log begins, above every number that the
    lost history used. Raises NotPermitted, TextMissing or Conflict.
    """
    permissions.check_permission(person, Permission.LIFT)
    if not reason.strip():
        raise TextMissing("Describe what happened. Nothing was recorded.")
    now = clock.now()
    epoch = _load_waiting_epoch(now)
    if not epoch.asked_by:
        epoch = _record_first_confirmation(epoch, person, reason.strip(), now)
        if not solo.is_solo():
            return epoch
    # guard: epoch-by-two
    if solo.lacks_second_person(epoch.asked_by, person.public_id):
        raise Conflict(
            "You have already confirmed. A second person must confirm as well."
        )
    if shown_asked is False:  # guard: epoch-shown
        raise Conflict(
            "Another person has confirmed since you opened this page, so yours would"
            " resume work. Nothing was recorded. Read what they wrote, then confirm."
        )
    return _begin_epoch(epoch, person, reason.strip(), now)


def _load_waiting_epoch(now: datetime) -> Epoch:
    """The waiting epoch; record it first if no sweep has done so. Raises Conflict."""
    why = restore_epochs.find_halt_reason()
    if why and why != restore_epochs.DISK_ERROR and find_waiting_epoch() is None:
        _record_restore(why, now)
    epoch = find_waiting_epoch()
    if epoch is None:
        raise Conflict("This database was not restored. Nothing was changed.")
    return epoch


def _record_first_confirmation(
    epoch: Epoch, person: Person, reason: str, now: datetime
) -> Epoch:
    unasked = Epoch.objects.filter(pk=epoch.pk, asked_by="", began_at__isnull=True)
    if unasked.update(asked_by=person.public_id, reason=reason) != 1:
        raise Conflict
    epoch.asked_by, epoch.reason = person.public_id, reason
    _log_epoch("epoch.asked", epoch, person, reason, now)
    return epoch


def _begin_epoch(epoch: Epoch, person: Person, reason: str, now: datetime) -> Epoch:
    highest = restore_epochs.compute_highest_record()
    periods.begin_period_after_restore(above=highest)
    changes = {
        "by": person.public_id,
        "began_at": now,
        "from_record": highest,
        "solo": solo.is_solo(),
    }
    agreed = Epoch.objects.filter(
        pk=epoch.pk, asked_by=epoch.asked_by, began_at__isnull=True
    )
    if agreed.update(**changes) != 1:
        raise Conflict
    # Another host may have recorded the same restore under its own number.
    Epoch.objects.filter(began_at__isnull=True).delete()
    waiting = _restart_request_deadlines(now)
    lost = _mark_all_claimed_unknown(now)
    epoch.by, epoch.began_at, epoch.from_record = person.public_id, now, highest
    _log_epoch("epoch.began", epoch, person, reason, now, unknown=lost, waiting=waiting)
    standing.close_resolved_alarm(
        AlarmKind.RESTORED, subject=f"epoch-{epoch.pk}", now=now, code="began"
    )
    failpoints.point("epoch_uncommitted", str(epoch.pk))
    transaction.on_commit(restore_epochs.accept_epoch)
    return epoch


def _restart_request_deadlines(now: datetime) -> int:
    """Give each pending request at least its original time again; return how many.
    Deadlines may have passed while nobody could decide."""
    pending = ApprovalRequest.objects.filter(status=RequestStatus.PENDING)
    rows = list(locks.lock_requests_in_order(pending).values_list("pk", flat=True))
    return incidents.restart_deadlines(rows, now)


def _mark_all_claimed_unknown(now: datetime) -> int:
    """Mark claimed executions UNKNOWN: the leases in a backup belong to nobody."""
    claimed = Execution.objects.filter(status=ExecutionStatus.CLAIMED)
    count = 0
    for pk in claimed.order_by("pk").values_list("pk", flat=True):
        execution = locks.lock_execution(pk)
        if execution.status == ExecutionStatus.CLAIMED:
            uncertain.mark_unknown(execution, uncertain.RESTORED, now)
            count += 1
    return count


def _log_epoch(
    kind: str, epoch: Epoch, person: Person, reason: str, now: datetime, **data: int
) -> None:
    log.append(
        kind,
        actor=build_actor(person),
        at=now,
        data={"epoch": epoch.pk, **data},
        private={"reason": reason},
    )

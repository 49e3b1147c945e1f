"""Recovery after the database was restored from a backup (proof.md T25).

A restore is detected and announced, everything halts, and a new epoch begins once two
people have confirmed it. The guard that halts everything is journal/restore_epochs.py.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from journal import clock, failpoints, high_water_mark, log, restore_epochs
from journal.errors import Conflict, Unwritten
from journal.models import Epoch
from policies.models import Person

from . import locks, permissions
from .alarms import standing
from .choices import AlarmKind, ExecutionStatus, RequestStatus
from .grants import uncertain
from .models import ApprovalRequest, Execution
from .permissions import Permission
from .stops import incidents


def waiting() -> Epoch | None:
    """The epoch that waits for two people to begin it; None in normal operation."""
    return Epoch.objects.filter(began_at__isnull=True).order_by("-number").first()


def latest() -> Epoch | None:
    """The newest epoch that has begun; None when no restore was ever confirmed."""
    return Epoch.objects.filter(began_at__isnull=False).order_by("-number").first()


def watch() -> str:
    """Check whether the database was restored; return why nothing may run, or "".

    When only this host has detected a restore, it announces it to all other hosts.
    """
    why = restore_epochs.watch()
    if why and why not in {restore_epochs.TOLD, restore_epochs.UNREAD}:
        notice(why=why)
    if why == restore_epochs.UNREADABLE:
        high_water_mark.set_aside()
    return why


@transaction.atomic(durable=True)
def notice(*, why: str) -> None:
    """Halt every host and alert people. Hosts that see the same restore share a row."""
    now = clock.now()
    _notice(why, now)


def _notice(why: str, now: datetime) -> None:
    number = restore_epochs.next_number()
    row = Epoch(number=number, noticed_at=now, why=why)
    if waiting() is not None:
        return
    Epoch.objects.bulk_create([row], ignore_conflicts=True)
    log.append(
        "epoch.noticed",
        actor=uncertain.RESTORE,
        at=now,
        data={"epoch": number, "code": why},
    )
    standing.raise_(
        AlarmKind.RESTORED,
        subject=f"epoch-{number}",
        proposal=None,
        data={"code": why},
        now=now,
        actor=uncertain.RESTORE,
    )


@transaction.atomic(durable=True)
def look_at(*, person: Person, reason: str) -> Epoch:
    """Confirm a restore: one person says what happened, a second begins the epoch.

    When the epoch begins, claimed executions become UNKNOWN, pending requests get
    their whole time again, and log records continue above every number that the lost
    history used. Locks: requests, executions. Raises NotYours, Unwritten or Conflict.
    """
    permissions.check(person, Permission.LIFT)
    if not reason.strip():
        raise Unwritten(errors=[{"path": "reason", "message": "say what happened"}])
    now = clock.now()
    epoch = _held(now)
    if not epoch.asked_by:
        return _ask(epoch, person, reason.strip(), now)
    if epoch.asked_by == person.public_id:  # guard: epoch-by-two
        raise Conflict("You have looked already. A second person must look as well.")
    return _begin(epoch, person, reason.strip(), now)


def _held(now: datetime) -> Epoch:
    """The waiting epoch; record it first if no sweep has done so. Raises Conflict."""
    why = restore_epochs.why()
    if why and why != restore_epochs.UNREAD and waiting() is None:
        _notice(why, now)
    epoch = waiting()
    if epoch is None:
        raise Conflict("This database was not restored. Nothing was changed.")
    return epoch


def _ask(epoch: Epoch, person: Person, reason: str, now: datetime) -> Epoch:
    unasked = Epoch.objects.filter(pk=epoch.pk, asked_by="", began_at__isnull=True)
    if unasked.update(asked_by=person.public_id, reason=reason) != 1:
        raise Conflict
    epoch.asked_by, epoch.reason = person.public_id, reason
    _tell("epoch.asked", epoch, person, reason, now)
    return epoch


def _begin(epoch: Epoch, person: Person, reason: str, now: datetime) -> Epoch:
    restore_epochs.check_numbers()
    highest = restore_epochs.highest_record()
    restore_epochs.renumber(highest)
    changes = {"by": person.public_id, "began_at": now, "from_record": highest}
    agreed = Epoch.objects.filter(
        pk=epoch.pk, asked_by=epoch.asked_by, began_at__isnull=True
    )
    if agreed.update(**changes) != 1:
        raise Conflict
    # Another host may have recorded the same restore under its own number.
    Epoch.objects.filter(began_at__isnull=True).delete()
    waiting = _give_time(now)
    lost = _doubt_what_ran(now)
    epoch.by, epoch.began_at, epoch.from_record = person.public_id, now, highest
    _tell("epoch.began", epoch, person, reason, now, unknown=lost, waiting=waiting)
    standing.close_itself(
        AlarmKind.RESTORED, subject=f"epoch-{epoch.pk}", now=now, code="began"
    )
    failpoints.point("epoch_uncommitted", str(epoch.pk))
    transaction.on_commit(restore_epochs.accept)
    return epoch


def _give_time(now: datetime) -> int:
    """Give each pending request at least its original time again; return how many.

    Deadlines may have passed while nobody could decide.
    """
    pending = ApprovalRequest.objects.filter(status=RequestStatus.PENDING)
    rows = list(locks.requests_in_order(pending).values_list("pk", flat=True))
    return incidents.begin_anew(rows, now)


def _doubt_what_ran(now: datetime) -> int:
    """Mark claimed executions UNKNOWN: the leases in a backup belong to nobody."""
    claimed = Execution.objects.filter(status=ExecutionStatus.CLAIMED)
    found = 0
    for pk in claimed.order_by("pk").values_list("pk", flat=True):
        execution = locks.execution(pk)
        if execution.status == ExecutionStatus.CLAIMED:
            uncertain.lose(execution, uncertain.RESTORED, now)
            found += 1
    return found


def _tell(
    kind: str, epoch: Epoch, person: Person, reason: str, now: datetime, **data: int
) -> None:
    log.append(
        kind,
        actor=log.Actor("person", person.public_id),
        at=now,
        data={"epoch": epoch.pk, **data},
        private={"reason": reason},
    )

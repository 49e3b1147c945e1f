"""Old periods of the log leave the database as files, when two people say so.

The first person writes the file, the second has it read again and compared with the
log; then the period's records are removed. What is left of them is the number of
records, the file's digest and the tree that later proofs need (journal/archives.py).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Q

from journal import archives, clock, log, restore_epochs
from journal.archives import Archive
from journal.errors import Conflict, TextMissing
from journal.models import LogPeriod
from journal.operations import operation
from policies import solo
from policies.models import Person
from policies.people import build_actor
from reviews import permissions
from reviews.choices import ExecutionStatus, RequestStatus
from reviews.models import ApprovalRequest, Execution
from reviews.roles import Permission

MONTH_DAYS = 31
OPEN = (RequestStatus.PENDING, RequestStatus.RECALLABLE)
UNDER_WAY = (ExecutionStatus.QUEUED, ExecutionStatus.CLAIMED, ExecutionStatus.UNKNOWN)


def list_periods_of_month(year: int, month: int) -> list[LogPeriod]:
    """The periods that began in this month of UTC, the oldest first."""
    began = Q(began_at__gte=datetime(year, month, 1, tzinfo=UTC))
    end = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    return list(LogPeriod.objects.filter(began, began_at__lt=end).order_by("number"))


def archive_period(
    period: LogPeriod, folder: Path, *, person: Person, reason: str, texts: bool
) -> LogPeriod:
    """Write a period into a file of this folder, or, as the second person, check that
    file and remove the period from the database. In solo mode one person does both.
    Returns the period as it is now. Raises NotPermitted, TextMissing, Conflict, OSError
    or BrokenArchive."""
    permissions.check_permission(person, Permission.ARCHIVE)
    if not reason.strip():
        raise TextMissing("Say why. Nothing was changed.")
    check_archivable(period)
    if not period.asked_by:
        archive = archives.write_archive(period, folder, texts=texts)
        _record_request(period, archive, person, reason.strip())
        period.refresh_from_db()
        if not solo.is_solo():
            return period
    # guard: archive-two
    if solo.lacks_second_person(period.asked_by, person.public_id):
        raise Conflict("You wrote this file. A second person must confirm it.")
    path = folder / period.archive_file
    archives.check_digest(period, path)
    archives.check_archive(period, path, archives.compute_tree(period))
    _remove_period(period, person, reason.strip())
    period.refresh_from_db()
    return period


def check_archivable(period: LogPeriod) -> None:
    """Raise Conflict unless a period may leave the database now."""
    months = settings.COUNTERSEAL.log_keep_months
    if not months:
        raise Conflict("The log stays in the database: LOG_KEEP_MONTHS is not set.")
    if period.archived_at is not None:
        raise Conflict(f"Period {period.number} was archived in {period.archive_file}.")
    restore_epochs.check_not_restored()
    later = LogPeriod.objects.filter(number__gt=period.number).order_by("number")
    following = later.first()
    if following is None or following.first_seq is None:
        raise Conflict("This period is not over, or some of its records have no place.")
    earlier = LogPeriod.objects.filter(number__lt=period.number, archived_at=None)
    if earlier.exists():
        raise Conflict("An earlier period must be archived first.")
    end = following.began_at
    if end > clock.now() - timedelta(days=MONTH_DAYS * months):
        raise Conflict(f"LOG_KEEP_MONTHS keeps this period: it is {months}.")
    requests = ApprovalRequest.objects.filter(status__in=OPEN)
    executions = Execution.objects.filter(status__in=UNDER_WAY)
    for rows in (requests, executions):
        open_row = rows.filter(proposal__created_at__lt=end).first()
        if open_row is not None:
            raise Conflict(
                f"Proposal {open_row.proposal_id} is older and is not over. Settle it."
            )


@operation(
    entry="archive_period", locks="", writes="LogPeriod", logs="log.archive_asked"
)
def _record_request(
    period: LogPeriod, archive: Archive, person: Person, reason: str
) -> None:
    unasked = LogPeriod.objects.filter(pk=period.pk, asked_by="", archived_at=None)
    changes = {
        "asked_by": person.public_id,
        "archive_file": archive.name,
        "archive_digest": archive.digest,
        "records": archive.records,
        "tree": archive.tree,
    }
    if unasked.update(**changes) != 1:
        raise Conflict
    _log_step("log.archive_asked", period, archive.digest, person, reason)


@operation(
    entry="archive_period",
    locks="the tables of the log (ACCESS EXCLUSIVE, shortly)",
    writes="LogPeriod",
    logs="log.archived",
)
def _remove_period(period: LogPeriod, person: Person, reason: str) -> None:
    waiting = LogPeriod.objects.filter(
        pk=period.pk, archive_digest=period.archive_digest, archived_at=None
    )
    now = clock.now()
    if waiting.update(archived_at=now, archived_by=person.public_id) != 1:
        raise Conflict
    _log_step("log.archived", period, period.archive_digest, person, reason)
    archives.drop_tables(period)


def _log_step(
    kind: str, period: LogPeriod, digest: str, person: Person, reason: str
) -> None:
    log.append(
        kind,
        actor=build_actor(person),
        at=clock.now(),
        data={"period": period.number, "digest": digest},
        private={"reason": reason},
    )

"""Detects that the database was restored from a backup, and halts the gate (proof.md
T25).

A backup does not contain what ran after it was taken. So after a restore nothing may
run until two people have confirmed it and a new restore epoch begins. Detection
compares the database with the high-water mark that this host keeps outside of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import structlog
from django.db import connection

from . import high_water_mark
from .errors import Conflict, DatabaseRestored
from .high_water_mark import HighWaterMark
from .models import Epoch

# Reasons for a halt: the database is in an older state, it is another server or
# timeline, the mark file is corrupt, or a restore is recorded and not yet confirmed.
BEHIND, ANOTHER, UNREADABLE, TOLD = "behind", "another", "unreadable", "told"
# The disk cannot be read at the moment: nothing runs until it can, and no person has to
# confirm anything.
DISK_ERROR = "unread"

logger = structlog.get_logger(__name__)
_END_OF_TIME = datetime.max.replace(tzinfo=UTC)

_DATABASE_STATE = """
SELECT coalesce((SELECT max(number) FROM journal_epoch
                 WHERE began_at IS NOT NULL), 1),
       (SELECT max(began_at) FROM journal_epoch),
       EXISTS (SELECT 1 FROM journal_epoch WHERE began_at IS NULL),
       (SELECT system_identifier::text FROM pg_control_system()),
       (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
       left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
       (SELECT encode(sha256(leaf), 'hex') FROM journal_logrecord WHERE id = %s),
       newest.id, encode(sha256(newest.leaf), 'hex')
FROM (SELECT 1) AS always
LEFT JOIN LATERAL (SELECT id, leaf FROM journal_logrecord ORDER BY id DESC LIMIT 1)
     AS newest ON true
"""


class DatabaseState(NamedTuple):
    """The present state of the database, to be compared with the high-water mark."""

    epoch: int
    began_at: datetime | None  # when the newest epoch began; None without a restore
    told: bool  # a restore is recorded and not yet confirmed
    system: str
    database: int
    timeline: str
    leaf: str | None  # hash of the record that the high-water mark names
    newest: int | None
    newest_leaf: str | None


@dataclass
class EpochStatus:
    """The last result of `update_status` in this process, so that pages need no query
    of their own."""

    why: str = ""
    # Each restore: when it was noticed, and when its new epoch began, if it has.
    restores: tuple[tuple[datetime, datetime | None], ...] = ()


last_status = EpochStatus()


def check_not_restored() -> None:
    """Raise DatabaseRestored while nothing may run or be decided. Everything that
    starts or approves an effect calls it. One query."""
    if find_halt_reason():  # guard: epoch
        raise DatabaseRestored


def find_halt_reason() -> str:
    """Why nothing may run: one of the constants above, or "" when all is well."""
    return _compare_with_mark()[0]


def _compare_with_mark() -> tuple[str, DatabaseState | None]:
    """Why nothing may run, and the state of the database if the mark could be read."""
    try:
        seen = high_water_mark.read_mark()
    except high_water_mark.CorruptMarkFile:
        return UNREADABLE, None
    except OSError:
        return DISK_ERROR, None
    now = load_database_state(seen)
    return _compute_halt_reason(seen, now), now


def update_status() -> str:
    """Exchange marks with the broker, find why nothing may run, and remember it in
    `last_status` for the pages of this process. Returns the reason, "" for none; then
    it advances the mark as well.

    Caller holds no transaction, because it calls the broker.
    """
    try:
        high_water_mark.sync_with_broker(at_once=True)
        last_status.why = find_halt_reason()
    except high_water_mark.CorruptMarkFile:
        last_status.why = UNREADABLE
    except OSError as error:
        logger.error("epoch.unread", error=str(error))
        last_status.why = DISK_ERROR
    last_status.restores = list_restores()
    if not last_status.why:
        advance_mark()
    return last_status.why


def list_restores() -> tuple[tuple[datetime, datetime | None], ...]:
    """Every restore, oldest first: when it was noticed, and when its new epoch began
    (None while two people have not confirmed it)."""
    rows = Epoch.objects.order_by("number")
    return tuple(rows.values_list("noticed_at", "began_at"))


def load_database_state(seen: HighWaterMark | None) -> DatabaseState:
    """The present state of the database. `leaf` is the hash of the record that `seen`
    names, None where there is no such record."""
    with connection.cursor() as cursor:
        cursor.execute(_DATABASE_STATE, [seen.record if seen else 0])
        return DatabaseState(*cursor.fetchone())


def _compute_halt_reason(seen: HighWaterMark | None, now: DatabaseState) -> str:
    if now.told:
        return TOLD
    # Two people began a newer epoch on another host, so the mark here is out of date.
    if seen is None or now.epoch > seen.epoch:
        return ""
    here = (now.system, now.database, now.timeline)
    if here != (seen.system, seen.database, seen.timeline):
        return ANOTHER
    same = now.epoch == seen.epoch and now.leaf == seen.leaf
    return "" if same else BEHIND


def advance_mark() -> None:
    """Move the high-water mark to the newest record. It runs before each effect, so
    that a backup from before the effect's claim is always detected.

    Raises DatabaseRestored, or OSError when the mark cannot be written. Caller holds no
    transaction: the mark may only name committed records.
    """
    try:
        seen = high_water_mark.read_mark()
    except high_water_mark.CorruptMarkFile:
        raise DatabaseRestored from None
    now = load_database_state(seen)
    if _compute_halt_reason(seen, now):
        raise DatabaseRestored
    place = build_mark(now)
    if place is not None and place != seen:
        high_water_mark.write_mark(place)
    high_water_mark.sync_with_broker()


def build_mark(now: DatabaseState) -> HighWaterMark | None:
    """The high-water mark for this state; None while the log is empty."""
    if now.newest is None or now.newest_leaf is None:
        return None
    return HighWaterMark(
        epoch=now.epoch,
        record=now.newest,
        leaf=now.newest_leaf,
        system=now.system,
        database=now.database,
        timeline=now.timeline,
    )


def is_from_backup(created_at: datetime) -> bool:
    """Whether a row created at this time came from a backup. In the lost history it may
    have been decided, and may have run."""
    until = find_backup_cutoff()
    return until is not None and created_at < until


def find_backup_cutoff() -> datetime | None:
    """The time before which every row came from a backup; the end of time while two
    people have not confirmed a restore. None if there never was a restore."""
    held, now = _compare_with_mark()
    return _END_OF_TIME if held or now is None else now.began_at


def compute_next_epoch() -> int:
    """The number for an epoch that begins now: above every epoch ever seen."""
    seen, now = high_water_mark.find_best_known_mark(), load_database_state(None)
    return max(now.epoch, seen.epoch if seen else 1) + 1


def compute_highest_record() -> int:
    """The highest record id of the lost history and of the present one."""
    seen, now = high_water_mark.find_best_known_mark(), load_database_state(None)
    return max(now.newest or 0, seen.record if seen else 0)


def check_transaction_counter() -> None:
    """Raise Conflict where the server's transaction counter is below the ids in the
    log, as after a dump was loaded into a new server. The sequencer would never place
    the records written from then on."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT xid > pg_current_xact_id() FROM journal_logrecord"
            " ORDER BY xid DESC, id DESC LIMIT 1"
        )
        if cursor.fetchone() == (True,):
            raise Conflict(
                "This server counts its transactions from below the log's. Nothing was"
                " changed. Stop it and raise its counter to a multiple of 1048576:"
                " pg_resetwal -x."
            )


def advance_record_ids(above: int) -> None:
    """Make new records start above id `above`, so that no id of the lost history is
    used again. Caller holds a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT setval(sequence.name, greatest(%s, nextval(sequence.name))) FROM"
            " pg_get_serial_sequence('journal_logrecord', 'id') AS found (name),"
            " LATERAL (SELECT name::regclass) AS sequence (name)",
            [above + 1],
        )


def accept_epoch() -> None:
    """Make this host use the epoch that has just begun: move a corrupt mark file aside
    and write a new mark. Caller holds no transaction."""
    high_water_mark.set_aside_corrupt_file()
    update_status()

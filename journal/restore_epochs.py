"""Detects that the database was restored from a backup, and halts the gate.

A backup does not contain what ran after it was taken. So after a restore nothing may
run until two people have confirmed it and a new restore epoch begins. Detection
compares the database with the high-water mark that this host keeps outside of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import structlog
from django.db import DEFAULT_DB_ALIAS, connections

from . import high_water_mark
from .errors import DatabaseRestored
from .high_water_mark import HighWaterMark
from .models import Epoch
from .statements import Statement

# Reasons for a halt: the database is in an older state, it is another server or
# timeline, the mark file is corrupt, or a restore is recorded and not yet confirmed.
BEHIND, ANOTHER, UNREADABLE, TOLD = "behind", "another", "unreadable", "told"
# The disk cannot be read at the moment: nothing runs until it can, and no person has to
# confirm anything.
DISK_ERROR = "unread"
HALT_WORDS = {
    BEHIND: "the database is older than this host has seen it",
    ANOTHER: "this is another database server than this host knows",
    UNREADABLE: "this host's mark of the newest record is unreadable",
    TOLD: "a restore from a backup waits for two people to confirm it",
    DISK_ERROR: "this host's mark of the newest record cannot be read",
}

logger = structlog.get_logger(__name__)
_END_OF_TIME = datetime.max.replace(tzinfo=UTC)

# What changes: the present epoch, when it began, and whether a restore is unconfirmed;
# the hash of the record that the mark of this host names; the newest record.
COLUMNS = """
(SELECT json_build_array(coalesce(max(number) FILTER (WHERE began_at IS NOT NULL), 1),
                         max(began_at), coalesce(bool_or(began_at IS NULL), false))
 FROM journal_epoch),
(SELECT encode(sha256(leaf), 'hex') FROM journal_logrecord
 WHERE id = %(record)s::bigint),
(SELECT ARRAY[id::text, encode(sha256(leaf), 'hex')] FROM journal_logrecord
 WHERE id >= journal_period_start() ORDER BY id DESC LIMIT 1)
"""
COLUMN_COUNT = 3
_DATABASE_STATE = Statement(f"SELECT {COLUMNS}")
# What stays the same while a connection lasts.
_IDENTITY = Statement("""
SELECT (SELECT system_identifier::text FROM pg_control_system()),
       (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
       left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
""")


class DatabaseIdentity(NamedTuple):
    """The server, the database and the timeline that a connection leads to."""

    system: str
    database: int
    timeline: str


class DatabaseState(NamedTuple):
    """The present state of the database, to be compared with the high-water mark."""

    identity: DatabaseIdentity
    epoch: int
    began_at: datetime | None  # when the newest epoch began; None without a restore
    unconfirmed: bool  # a restore is recorded and not yet confirmed
    leaf: str | None  # hash of the record that the high-water mark names
    newest: int | None
    newest_leaf: str | None


@dataclass(frozen=True, slots=True)
class LocalMark:
    """The high-water mark of this host. `why` says why it could not be read."""

    seen: HighWaterMark | None
    why: str = ""

    @property
    def record(self) -> int:
        """The record that it names; 0 for none."""
        return self.seen.record if self.seen else 0


@dataclass
class EpochStatus:
    """The last result of `update_status`, so that pages need no query of their own."""

    why: str = ""
    # Each restore: when it was noticed, and when its new epoch began, if it has.
    restores: tuple[tuple[datetime, datetime | None], ...] = ()


last_status = EpochStatus()


def check_not_restored(halted: str | None = None) -> None:
    """Raise DatabaseRestored while nothing may run or be decided. Everything that
    starts or approves an effect calls it. `halted` is the reason, where the caller has
    read it; otherwise this takes one query."""
    if find_halt_reason() if halted is None else halted:  # guard: epoch
        raise DatabaseRestored


def find_halt_reason() -> str:
    """Why nothing may run: one of the constants above, or "" when all is well."""
    return _compare_with_mark()[0]


def _compare_with_mark() -> tuple[str, DatabaseState]:
    """Why nothing may run, and the state of the database."""
    mark = read_local_mark()
    now = load_database_state(mark.seen)
    return compute_halt_reason(mark, now), now


def read_local_mark() -> LocalMark:
    """The mark of this host, or why it cannot be read."""
    try:
        return LocalMark(high_water_mark.read_mark())
    except high_water_mark.CorruptMarkFile:
        return LocalMark(None, UNREADABLE)
    except OSError:
        return LocalMark(None, DISK_ERROR)


def update_status() -> str:
    """Exchange marks with the broker, find why nothing may run, and remember it in
    `last_status` for the pages of this process. Returns the reason, "" for none; then
    it advances the mark as well. Caller holds no transaction, because it calls the
    broker."""
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
    return build_state(_DATABASE_STATE.fetch_one(record=seen.record if seen else 0))


def build_state(values: Sequence[Any]) -> DatabaseState:
    """The state of the database from the values of `COLUMNS`."""
    (epoch, began_at, unconfirmed), leaf, newest = values
    return DatabaseState(
        identity=_load_identity(),
        epoch=epoch,
        began_at=datetime.fromisoformat(began_at) if began_at else None,
        unconfirmed=unconfirmed,
        leaf=leaf,
        newest=int(newest[0]) if newest else None,
        newest_leaf=newest[1] if newest else None,
    )


def _load_identity() -> DatabaseIdentity:
    """What this thread's connection leads to. A server that starts again, from a backup
    or not, ends its connections, so each is asked once."""
    pooled: Any = connections[DEFAULT_DB_ALIAS].connection
    identity: DatabaseIdentity | None = getattr(pooled, "identity", None)
    if identity is None:
        identity = pooled.identity = DatabaseIdentity(*_IDENTITY.fetch_one())
    return identity


def compute_halt_reason(mark: LocalMark, now: DatabaseState) -> str:
    """Why nothing may run, from the mark of this host and the state of the database
    that was loaded with it; "" when all is well."""
    if mark.why:
        return mark.why
    if now.unconfirmed:
        return TOLD
    seen = mark.seen
    # Two people began a newer epoch on another host, so the mark here is out of date.
    if seen is None or now.epoch > seen.epoch:
        return ""
    if now.identity != (seen.system, seen.database, seen.timeline):
        return ANOTHER
    same = now.epoch == seen.epoch and now.leaf == seen.leaf
    return "" if same else BEHIND


def advance_mark(
    mark: LocalMark | None = None, database: DatabaseState | None = None
) -> None:
    """Move the high-water mark to the newest record. It runs before each effect, so
    that a backup from before the effect's claim is always detected. A caller that has
    read both after the claim passes them. Raises DatabaseRestored, or OSError when the
    mark cannot be written. Caller holds no transaction: the mark may only name
    committed records."""
    if mark is None or mark.why == DISK_ERROR or database is None:
        mark = _read_readable_mark()
        database = load_database_state(mark.seen)
    if compute_halt_reason(mark, database):
        raise DatabaseRestored
    seen, now = mark.seen, database
    place = build_mark(now)
    if place is not None and place != seen:
        high_water_mark.write_mark(place)
    high_water_mark.sync_with_broker()


def _read_readable_mark() -> LocalMark:
    """The mark of this host. Raises DatabaseRestored for a corrupt one, and OSError."""
    try:
        return LocalMark(high_water_mark.read_mark())
    except high_water_mark.CorruptMarkFile:
        raise DatabaseRestored from None


def build_mark(now: DatabaseState) -> HighWaterMark | None:
    """The high-water mark for this state; None while the log is empty."""
    if now.newest is None or now.newest_leaf is None:
        return None
    return HighWaterMark(
        epoch=now.epoch,
        record=now.newest,
        leaf=now.newest_leaf,
        system=now.identity.system,
        database=now.identity.database,
        timeline=now.identity.timeline,
    )


@dataclass(frozen=True, slots=True)
class BackupCutoff:
    """The time before which every row came from a backup: the end of time while two
    people have not confirmed a restore, None if there never was one. In the lost
    history such a row may have been decided, and may have run."""

    until: datetime | None

    def covers_row(self, created_at: datetime) -> bool:
        """Whether a row created at this time came from a backup."""
        return self.until is not None and created_at < self.until


def load_backup_cutoff() -> BackupCutoff:
    """The present cutoff. One query."""
    return compute_backup_cutoff(*_compare_with_mark())


def compute_backup_cutoff(halted: str, now: DatabaseState) -> BackupCutoff:
    """The cutoff in this state of the database, with the reason of a halt, if any."""
    return BackupCutoff(_END_OF_TIME if halted else now.began_at)


def compute_next_epoch() -> int:
    """The number for an epoch that begins now: above every epoch ever seen."""
    seen, now = high_water_mark.find_best_known_mark(), load_database_state(None)
    return max(now.epoch, seen.epoch if seen else 1) + 1


def compute_highest_record() -> int:
    """The highest record id of the lost history and of the present one."""
    seen, now = high_water_mark.find_best_known_mark(), load_database_state(None)
    return max(now.newest or 0, seen.record if seen else 0)


def accept_epoch() -> None:
    """Make this host use the epoch that has just begun: move a corrupt mark file aside
    and write a new mark. Caller holds no transaction."""
    high_water_mark.set_aside_corrupt_file()
    update_status()

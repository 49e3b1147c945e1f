"""Whether this is still the database that we know, or an older one was put in its place
(proof.md T25). What ran after a backup was taken is not in it: nothing may run again
until two people have looked and a new epoch begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import structlog
from django.db import connection

from . import high_water_mark
from .errors import Conflict, Restored
from .high_water_mark import Seen
from .models import Epoch

# Why: an older state, another server, a note that says nothing, or another host knew.
BEHIND, ANOTHER, UNREADABLE, TOLD = "behind", "another", "unreadable", "told"
# The disk does not give the note just now: nothing runs meanwhile, and it needs nobody
# who looks at the database.
UNREAD = "unread"

logger = structlog.get_logger(__name__)
_ALL = datetime.max.replace(tzinfo=UTC)

_LOOK = """
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


class Look(NamedTuple):
    """The database now, beside what was seen of it before."""

    epoch: int
    began_at: datetime | None  # the epoch, after a restore
    told: bool
    system: str
    database: int
    timeline: str
    leaf: str | None  # of the record that was seen last
    newest: int | None
    newest_leaf: str | None


@dataclass
class Known:
    """What `watch` found last in this process, for pages: they need not ask."""

    why: str = ""
    # Each restore: when it was noticed, and when things ran again, if they do.
    restores: tuple[tuple[datetime, datetime | None], ...] = ()


known = Known()


def check() -> None:
    """Raises Restored while nothing may run or be decided. One query; asked by
    everything that begins an effect or says yes to one."""
    if why():  # guard: epoch
        raise Restored


def why() -> str:
    """Why nothing may run: one of the words above; "" when all is well."""
    return _look_about()[0]


def _look_about() -> tuple[str, Look | None]:
    """Why nothing may run, and the database now where the note could be read."""
    try:
        seen = high_water_mark.read()
    except high_water_mark.Unreadable:
        return UNREADABLE, None
    except OSError:
        return UNREAD, None
    now = look(seen)
    return _why(seen, now), now


def watch() -> str:
    """The same, with what other hosts saw, and remembered for the pages of this
    process. Outside a transaction: the broker is asked."""
    try:
        high_water_mark.share(at_once=True)
        known.why = why()
    except high_water_mark.Unreadable:
        known.why = UNREADABLE
    except OSError as error:
        logger.error("epoch.unread", error=str(error))
        known.why = UNREAD
    known.restores = restores()
    if not known.why:
        advance()
    return known.why


def restores() -> tuple[tuple[datetime, datetime | None], ...]:
    """Each: when it was noticed, and when a new epoch began, oldest first."""
    rows = Epoch.objects.order_by("number")
    return tuple(rows.values_list("noticed_at", "began_at"))


def look(seen: Seen | None) -> Look:
    with connection.cursor() as cursor:
        cursor.execute(_LOOK, [seen.record if seen else 0])
        return Look(*cursor.fetchone())


def _why(seen: Seen | None, now: Look) -> str:
    if now.told:
        return TOLD
    # A newer epoch than ours was begun on another host, by two people.
    if seen is None or now.epoch > seen.epoch:
        return ""
    here = (now.system, now.database, now.timeline)
    if here != (seen.system, seen.database, seen.timeline):
        return ANOTHER
    same = now.epoch == seen.epoch and now.leaf == seen.leaf
    return "" if same else BEHIND


def advance() -> None:
    """Write down the newest record, outside the database. Before an effect: so a backup
    from before its claim can always be told.

    Raises Restored, or OSError when it cannot be written down. Outside a transaction:
    only what is committed may be seen.
    """
    try:
        seen = high_water_mark.read()
    except high_water_mark.Unreadable:
        raise Restored from None
    now = look(seen)
    if _why(seen, now):
        raise Restored
    place = place_of(now)
    if place is not None and place != seen:
        high_water_mark.keep(place)
    high_water_mark.share()


def place_of(now: Look) -> Seen | None:
    """Where the database is; None while its log is empty."""
    if now.newest is None or now.newest_leaf is None:
        return None
    return Seen(
        epoch=now.epoch,
        record=now.newest,
        leaf=now.newest_leaf,
        system=now.system,
        database=now.database,
        timeline=now.timeline,
    )


def inherited(created_at: datetime) -> bool:
    """Whether what was made then came back from a backup: it may have been decided, and
    may have run, in the history that is lost."""
    until = inherited_until()
    return until is not None and created_at < until


def inherited_until() -> datetime | None:
    """What was made before came back from a backup: all of it, while two people have
    not looked. None where no backup was ever put back."""
    held, now = _look_about()
    return _ALL if held or now is None else now.began_at


def next_number() -> int:
    """Of an epoch that begins now: above all that was ever seen."""
    seen, now = high_water_mark.known(), look(None)
    return max(now.epoch, seen.epoch if seen else 1) + 1


def highest_record() -> int:
    """Of the history that is lost and the one that is here."""
    seen, now = high_water_mark.known(), look(None)
    return max(now.newest or 0, seen.record if seen else 0)


def check_numbers() -> None:
    """Raises Conflict where the server's transactions count from lower than the log's
    do, as after a dump was read into a new server: the sequencer would never come to
    what is written from now on."""
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


def renumber(above: int) -> None:
    """Let no record have a number that another had. Caller holds a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT setval(sequence.name, greatest(%s, nextval(sequence.name))) FROM"
            " pg_get_serial_sequence('journal_logrecord', 'id') AS found (name),"
            " LATERAL (SELECT name::regclass) AS sequence (name)",
            [above + 1],
        )


def accept() -> None:
    """The epoch that just began is the one that this host knows from now on."""
    high_water_mark.set_aside()
    watch()

"""Decides whether a database on another timeline is a standby that took over and has
everything that the gate ever acknowledged (FAILOVER=synchronous).

A point-in-time recovery ends on a new timeline as well, so the timeline alone says
nothing. docs/failover.md has the conditions, why they suffice, and what they leave out.
Each host keeps a note outside of the database, beside its high-water mark: the last
beat that it committed, and whether the database then waited for a standby.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from django.conf import settings

from . import high_water_mark, restore_epochs
from .high_water_mark import HighWaterMark
from .models import Promotion
from .restore_epochs import ANOTHER, BEHIND, DatabaseState
from .statements import Statement

# Why two people must look after all, as further reasons for a halt.
OLDER_TIMELINE, NOT_SYNCHRONOUS = "older_timeline", "not_synchronous"
UNWATCHED, NOT_STREAMED = "unwatched", "not_streamed"
HOSTS_MISSING = "hosts_missing"
# No reason: other hosts have not compared their notes yet.
WAITING = "waiting"

# A host writes a beat every few seconds (hitl/restore_watch.py).
BEAT_PAUSE_S = 4.0
# A host that was silent for so long before the last beat of another has nothing that
# the other had not seen; and so long a note may be older than the mark beside it.
SILENT_S = 60.0
UNWATCHED_S = 30.0
# How long the hosts have to compare their notes with a standby that took over: a
# connection to a dead server is given up within 25 seconds.
PATIENCE_S = 60.0

_TIMELINE = "left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)"
# `since` begins again with each timeline. The name of the timeline is a condition: the
# connection may lead to another server by now.
_BEAT = Statement(f"""
INSERT INTO journal_host (id, name, timeline, since, beats, seen_at)
SELECT %(host)s::text, %(name)s::text, %(timeline)s::text, clock_timestamp(), 1,
    clock_timestamp()
WHERE {_TIMELINE} = %(timeline)s::text
ON CONFLICT (id) DO UPDATE SET
    name = excluded.name, beats = journal_host.beats + 1, seen_at = excluded.seen_at,
    since = CASE WHEN journal_host.timeline = excluded.timeline
                 THEN journal_host.since ELSE excluded.since END,
    timeline = excluded.timeline
WHERE journal_host.timeline <> excluded.timeline
   OR journal_host.seen_at < excluded.seen_at - make_interval(secs => %(pause)s)
   OR journal_host.seen_at > excluded.seen_at
RETURNING beats,
    current_setting('synchronous_commit') IN ('on', 'remote_apply', 'remote_write')
    AND current_setting('synchronous_standby_names') <> ''
""")
# Only a server that was a streaming standby when it took over, and was not restarted
# since, knows up to where it received the log. A recovery target means a restore.
_STREAMED = Statement("""
SELECT pg_last_wal_receive_lsn() IS NOT NULL AND NOT EXISTS (
    SELECT FROM pg_settings WHERE setting <> '' AND name IN (
        'recovery_target', 'recovery_target_name', 'recovery_target_time',
        'recovery_target_xid', 'recovery_target_lsn'))
""")
_FIND_BEAT = Statement("SELECT beats FROM journal_host WHERE id = %(host)s::text")
# `seen_at` stays: it tells when this host was last seen before the promotion.
_FIND_NOTE = Statement("""
UPDATE journal_host SET timeline = %(timeline)s::text, since = clock_timestamp()
WHERE id = %(host)s::text AND timeline <> %(timeline)s::text
""")
# Those who had a beat in the last minute before the promotion and did not find their
# note yet. The first who found it divides the time before from the time after.
_MISSING = Statement("""
WITH found AS (
    SELECT min(since) AS at FROM journal_host WHERE timeline = %(timeline)s::text
), last AS (
    SELECT max(seen_at) AS at FROM journal_host
    WHERE seen_at < (SELECT at FROM found)
)
SELECT name FROM journal_host WHERE timeline <> %(timeline)s::text
AND (seen_at > (SELECT at FROM last) - make_interval(secs => %(silent)s)
     OR (SELECT at FROM last) IS NULL)
ORDER BY name
""")
_FOUND = Statement(
    "SELECT name FROM journal_host WHERE timeline = %(timeline)s::text ORDER BY name"
)
_FORGET = Statement("""
DELETE FROM journal_host WHERE timeline <> %(timeline)s::text
AND seen_at < clock_timestamp() - interval '1 day'
""")


_ACCEPT = Statement("""
INSERT INTO journal_promotion (system, database, before, timeline, at, record, hosts)
VALUES (%(system)s::text, %(database)s, %(before)s::text, %(timeline)s::text, %(at)s,
        %(record)s, %(hosts)s::jsonb)
ON CONFLICT DO NOTHING RETURNING id
""")


@dataclass(frozen=True, slots=True)
class HostNote:
    """What this host keeps of its last beat, outside of the database."""

    host: str
    system: str
    database: int
    timeline: str
    beats: int
    synchronous: bool


@dataclass
class Waiting:
    """Since when this process waits for other hosts, by time.monotonic(), and for what
    timeline."""

    timeline: str = ""
    since: float = 0.0


@dataclass
class Replication:
    """Whether the database waited for a standby at the last beat of this process; None
    before the first."""

    synchronous: bool | None = None


_waiting = Waiting()
last_replication = Replication()


def is_enabled() -> bool:
    """Whether a standby that took over without a loss needs no person."""
    return bool(settings.COUNTERSEAL.failover == "synchronous")


def build_note_path() -> Path:
    return high_water_mark.build_mark_path().with_name("host")


def read_note() -> HostNote | None:
    """The note of this host; None without a readable one: then nothing is proved."""
    with suppress(OSError, ValueError, TypeError):
        return HostNote(**json.loads(build_note_path().read_text()))
    return None


def record_beat() -> None:
    """Commit that this host sees the database, and then write its note. Call it only
    while nothing is wrong, outside of a transaction. Raises OSError."""
    mark = restore_epochs.read_local_mark().seen
    if mark is None:
        return
    note = read_note()
    host = note.host if note else uuid.uuid4().hex
    row = _BEAT.fetch_first(
        host=host,
        name=socket.gethostname()[:255],
        timeline=mark.timeline,
        pause=BEAT_PAUSE_S,
    )
    if row is None:  # another process of this host has just done it
        return
    beats, synchronous = row
    last_replication.synchronous = synchronous
    _write_note(
        HostNote(host, mark.system, mark.database, mark.timeline, beats, synchronous)
    )


def _write_note(note: HostNote) -> None:
    path = build_note_path()
    draft = path.with_name(f"host.{os.getpid()}.draft")
    with draft.open("w") as file:
        file.write(json.dumps(asdict(note)))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def examine_promotion() -> str:
    """Why the gate may not go on on this timeline: a reason for a halt, or WAITING; ""
    when every host has found its note, or the gate went on already. Records that this
    host has found its own. Call it outside of a transaction, when the reason for the
    halt is ANOTHER."""
    mark = restore_epochs.read_local_mark()
    if not is_enabled() or mark.seen is None:
        return mark.why or ANOTHER
    now = restore_epochs.load_database_state(mark.seen)
    why = _compare(mark.seen, now)
    if why or is_accepted(now):
        return why
    note = read_note()
    if note is None:  # a new host, of which nobody waits for anything
        return _wait(now)
    why = _check_note(note, mark.seen)
    if why:
        return why
    _FIND_NOTE.execute(host=note.host, timeline=now.identity.timeline)
    return _wait(now) if list_missing_hosts(now) else ""


def _compare(seen: HighWaterMark, now: DatabaseState) -> str:
    """Whether this is another timeline of the same database, with the record that the
    mark names."""
    system, database, timeline = now.identity
    # guard: failover-system
    if (system, database) != (seen.system, seen.database):
        return ANOTHER
    # guard: failover-timeline
    if int(timeline, 16) <= int(seen.timeline, 16):
        return OLDER_TIMELINE
    # guard: failover-record
    if now.leaf != seen.leaf or now.epoch != seen.epoch:
        return BEHIND
    return ""


def _check_note(note: HostNote, seen: HighWaterMark) -> str:
    """Whether the note proves that nothing was lost which this host has seen."""
    known = (note.system, note.database, note.timeline)
    # guard: failover-synchronous
    if not note.synchronous or known != (seen.system, seen.database, seen.timeline):
        return NOT_SYNCHRONOUS
    # guard: failover-watched
    if _compute_lag() > UNWATCHED_S:
        return UNWATCHED
    # guard: failover-streamed
    if _STREAMED.fetch_one() != (True,):
        return NOT_STREAMED
    beat = _FIND_BEAT.fetch_first(host=note.host)
    # guard: failover-beat
    if beat is None or beat[0] < note.beats:
        return BEHIND
    return ""


def _compute_lag() -> float:
    """Seconds between the note and a later mark: meanwhile nobody asked whether the
    database waits for a standby."""
    mark, note = high_water_mark.build_mark_path(), build_note_path()
    return mark.stat().st_mtime - note.stat().st_mtime


def _wait(now: DatabaseState) -> str:
    """WAITING, until the other hosts have had their time."""
    if _waiting.timeline != now.identity.timeline:
        _waiting.timeline, _waiting.since = now.identity.timeline, time.monotonic()
    late = time.monotonic() - _waiting.since > PATIENCE_S
    return HOSTS_MISSING if late else WAITING


def list_missing_hosts(now: DatabaseState) -> list[str]:
    """The names of the hosts that have not found their notes on this timeline."""
    rows = _MISSING.fetch_all(timeline=now.identity.timeline, silent=SILENT_S)
    return [name for (name,) in rows]


def is_accepted(now: DatabaseState) -> bool:
    """Whether the gate went on on this timeline."""
    system, database, timeline = now.identity
    rows = Promotion.objects.filter(system=system, database=database, timeline=timeline)
    return rows.exists()


def accept_promotion(at: datetime) -> Promotion | None:
    """Record that the gate goes on on this timeline; None when a host is missing, or
    another process has recorded it. Caller holds a transaction."""
    seen = restore_epochs.read_local_mark().seen
    now = restore_epochs.load_database_state(seen)
    # guard: failover-hosts
    if seen is None or now.unconfirmed or list_missing_hosts(now):
        return None
    system, database, timeline = now.identity
    names = [name for (name,) in _FOUND.fetch_all(timeline=timeline)]
    row = Promotion(
        system=system,
        database=database,
        before=seen.timeline,
        timeline=timeline,
        at=at,
        record=seen.record,
        hosts=names,
    )
    new = _ACCEPT.fetch_first(
        system=system,
        database=database,
        before=row.before,
        timeline=timeline,
        at=at,
        record=row.record,
        hosts=json.dumps(names),
    )
    _FORGET.execute(timeline=timeline)
    return row if new else None


def adopt_timeline() -> None:
    """Move this host's mark to the timeline on which the gate went on. The newest
    record is that of the promotion or a later one, so a mark on a timeline always names
    a record that was written there: whoever has it descends from that timeline. Raises
    OSError."""
    seen = restore_epochs.read_local_mark().seen
    now = restore_epochs.load_database_state(seen)
    place = restore_epochs.build_mark(now)
    if seen is None or place is None or _compare(seen, now) or not is_accepted(now):
        return
    high_water_mark.write_mark(replace(place, epoch=seen.epoch))

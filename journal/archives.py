"""Files with the records of old periods, which then leave the database.

A file is gzip of JSON Lines: a line about the period, a line for each record in the
order of the log, and a line with the number of records and the tree of RFC 6962 over
the whole log so far. That tree stays in the database as well, as the roots of its
complete subtrees: with them the root hash of the log, and every proof about a later
record, come out as if the records were still there.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from django.db import OperationalError, connection
from django.db.models import OuterRef, Subquery

from . import periods
from .errors import Conflict
from .merkle import Frontier, MerkleTree, hash_leaf
from .models import LogPayload, LogPeriod, LogPosition, LogRecord

VERSION = 1
CHUNK = 2000
PATIENCE_MS = 2000
# Their rows point to records, so records leave last.
_TABLES = ("journal_logposition", "journal_logpayload", "journal_logrecord")


class BrokenArchive(Exception):
    """The file is not what was archived; the text says why."""


@dataclass(frozen=True, slots=True)
class Archive:
    """What a file contains: `records` of one period, and the log's tree after them."""

    name: str
    digest: str
    records: int
    tree: list[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class ArchivedPart:
    """A part of the log that left the database: its records are those until `ended_at`,
    since the part before it."""

    file: str
    digest: str
    began_at: datetime
    ended_at: datetime
    archived_at: datetime

    def __str__(self) -> str:
        return f"archived on {self.archived_at:%Y-%m-%d} in the file {self.file}"


def list_archived_parts(
    *, since: datetime | None = None, until: datetime | None = None
) -> list[ArchivedPart]:
    """The parts of the log that left the database, the oldest first; only those with
    records between two times. One query."""
    later = LogPeriod.objects.filter(number__gt=OuterRef("number")).order_by("number")
    rows = LogPeriod.objects.exclude(archived_at=None).annotate(
        ended_at=Subquery(later.values("began_at")[:1])
    )
    if since is not None:
        rows = rows.filter(ended_at__gt=since)
    if until is not None:
        rows = rows.filter(began_at__lte=until)
    return [
        ArchivedPart(
            row.archive_file,
            row.archive_digest,
            row.began_at,
            row.ended_at,
            row.archived_at,
        )
        for row in rows.order_by("number")
        if row.archived_at is not None
    ]


def build_file_name(period: LogPeriod) -> str:
    return f"log-period-{period.number:06}.jsonl.gz"


def load_tree_before(period: LogPeriod) -> MerkleTree:
    """The tree of the whole log before this period, whose predecessors are archived."""
    earlier = LogPeriod.objects.filter(number__lt=period.number)
    last = earlier.order_by("-number").first()
    frontier: Frontier = (last.tree or []) if last else []
    return MerkleTree.from_frontier(frontier)


def write_archive(period: LogPeriod, folder: Path, *, texts: bool) -> Archive:
    """Write the records of a period into a file of this folder, with what people wrote
    if `texts`, and read it again. Raises OSError or BrokenArchive."""
    path = folder / build_file_name(period)
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    tree = load_tree_before(period)
    before = tree.list_frontier()
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with (
        os.fdopen(descriptor, "wb") as file,
        gzip.GzipFile("", "wb", 6, file, mtime=0) as packed,
    ):
        _write_line(
            packed,
            {
                "counterseal_log": VERSION,
                "period": period.number,
                "first_seq": period.first_seq,
                "tree": before,
                "texts": texts,
            },
        )
        records = 0
        for line, leaf_hash in _read_lines(period, texts=texts):
            tree.add(leaf_hash)
            records += 1
            _write_line(packed, line)
        _write_line(packed, {"records": records, "tree": tree.list_frontier()})
        packed.close()
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    return check_archive(period, path, tree.list_frontier())


def check_archive(
    period: LogPeriod, path: Path, tree: list[tuple[int, str]] | None = None
) -> Archive:
    """Read the file of a period, and compare it with `tree`, or with what the database
    says of the period. Raises OSError or BrokenArchive."""
    rebuilt = MerkleTree.from_frontier(load_tree_before(period).list_frontier())
    records = 0
    for leaf_hash in read_leaf_hashes(period, path):
        rebuilt.add(leaf_hash)
        records += 1
    expected = tree if tree is not None else _read_tree(period)
    if rebuilt.list_frontier() != expected:
        raise BrokenArchive("its records are not those of the log")
    return Archive(path.name, _compute_digest(path), records, rebuilt.list_frontier())


def compute_tree(period: LogPeriod) -> list[tuple[int, str]]:
    """The log's tree after this period, from the hashes in the database."""
    tree = load_tree_before(period)
    low, high = periods.compute_ids(period.number)
    rows = LogPosition.objects.filter(record_id__gte=low, record_id__lt=high)
    for leaf_hash in (
        rows.order_by("seq").values_list("leaf_hash", flat=True).iterator()
    ):
        tree.add(bytes(leaf_hash))
    return tree.list_frontier()


def read_leaf_hashes(period: LogPeriod, path: Path) -> Iterator[bytes]:
    """The hash of each record in the file, computed from its bytes. Raises OSError or
    BrokenArchive."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from _read_leaf_hashes(period, lines)
    except (ValueError, KeyError, TypeError, EOFError) as error:
        raise BrokenArchive("it cannot be read") from error


def check_digest(period: LogPeriod, path: Path) -> None:
    """Raise BrokenArchive, or OSError, unless this is the file that was archived."""
    if _compute_digest(path) != period.archive_digest:
        raise BrokenArchive("its digest is not the one that was recorded")


def _read_leaf_hashes(period: LogPeriod, lines: TextIO) -> Iterator[bytes]:
    head = json.loads(next(lines, "null"))
    if (head["counterseal_log"], head["period"]) != (VERSION, period.number):
        raise BrokenArchive("it is of another period")
    expected = head["first_seq"]
    for text in lines:
        line = json.loads(text)
        if "leaf" not in line:
            if line["records"] != expected - head["first_seq"]:
                raise BrokenArchive("it has another number of records than it says")
            return
        if line["seq"] != expected:
            raise BrokenArchive(f"record {expected} is missing")
        expected += 1
        yield hash_leaf(line["leaf"].encode())
    raise BrokenArchive("its end is missing")


def _read_tree(period: LogPeriod) -> list[tuple[int, str]]:
    return [(size, root) for size, root in period.tree or []]


def _compute_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_line(packed: gzip.GzipFile, line: dict[str, Any]) -> None:
    packed.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")


def _read_lines(
    period: LogPeriod, *, texts: bool
) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Each record as a line of the file, and its hash as the database has it."""
    low, high = periods.compute_ids(period.number)
    rows = LogPosition.objects.filter(record_id__gte=low, record_id__lt=high)
    after = (period.first_seq or 0) - 1
    while part := list(rows.filter(seq__gt=after).order_by("seq")[:CHUNK]):
        after, keys = part[-1].seq, [row.pk for row in part]
        # Nearly the same rows as those with these keys; a list of keys takes PostgreSQL
        # many times as long to plan.
        near = {"pk__gte": min(keys), "pk__lte": max(keys)}
        records = {row.pk: row for row in LogRecord.objects.filter(**near)}
        payloads = LogPayload.objects.filter(**near) if texts else ()
        written = {payload.pk: payload for payload in payloads}
        for row in part:
            yield (
                _build_line(row, records[row.pk], written.get(row.pk)),
                bytes(row.leaf_hash),
            )


def _build_line(
    row: LogPosition, record: LogRecord, payload: LogPayload | None
) -> dict[str, Any]:
    line: dict[str, Any] = {
        "seq": row.seq,
        "id": record.pk,
        "leaf": bytes(record.leaf).decode(),
        "agent": record.agent,
        "thread": record.thread,
    }
    if payload is not None:
        line |= {"salt": bytes(payload.salt).hex(), "texts": payload.values}
    return line


def drop_tables(period: LogPeriod) -> None:
    """Remove a period's tables from the log. Raises Conflict when somebody uses the log
    without a pause. Caller holds a transaction."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {PATIENCE_MS}")
            for table in _TABLES:
                part = f"{table}_{period.number}"
                cursor.execute(f"ALTER TABLE {table} DETACH PARTITION {part}")
                cursor.execute(f"DROP TABLE {part}")
    except OperationalError as error:
        raise Conflict(
            "Somebody reads or writes the log. Nothing was changed. Try again."
        ) from error

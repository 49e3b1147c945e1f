"""Checks the stored log: its records are the bytes that were hashed, in one order
without a gap, and its pages show what the records say.

The root hash is that of RFC 6962 over the leaf hashes, in the order of the log. An
auditor who notes it with the number of records can later tell whether those records
are still the same: an administrator of the database could replace records and their
hashes, but not the root that somebody has noted elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import archives, log
from .merkle import MerkleTree, hash_leaf
from .models import LogPayload, LogPeriod, LogPosition, LogRecord

CHUNK = 1000
MOST_FAULTS = 20


@dataclass(slots=True)
class Verification:
    """What a check of the log found. `faults` are sentences, the first `MOST_FAULTS`
    of them; `waiting` counts the records that have no place in the log yet. `roots`
    has the root hash of all records and of the first `at` ones, by their number;
    `archived` of the records are in files."""

    records: int = 0
    waiting: int = 0
    archived: int = 0
    faults: list[str] = field(default_factory=list)
    roots: dict[int, str] = field(default_factory=dict)

    @property
    def root(self) -> str:
        return self.roots.get(self.records, "")


def verify_log(
    *, newest: int | None = None, at: int | None = None, folder: Path | None = None
) -> Verification:
    """Check every record, or only the `newest` ones, of which no root hash is known.
    `at` asks for the root hash of the first records, too. Records that were archived
    are checked where their files are in `folder`; without it their tree is taken as the
    database has it."""
    result = Verification()
    tree = _load_archived_tree(result, folder, at)
    last = LogPosition.objects.order_by("-seq").values_list("seq", flat=True).first()
    first = result.archived
    if newest is not None and last is not None:
        first = max(last + 1 - newest, first)
    whole = first == result.archived
    expected = first
    for position, payload in _read_records(first, last):
        if position.seq != expected:
            _add_fault(result, f"record {expected} is missing")
        expected = position.seq + 1
        for fault in _list_faults(position, payload):
            _add_fault(result, f"record {position.seq}: {fault}")
        tree.add(bytes(position.leaf_hash))
        result.records += 1
        if result.records == at and whole:
            result.roots[at] = tree.compute_root()
    if whole:
        result.roots[result.records] = tree.compute_root()
    result.waiting = LogRecord.objects.filter(position__isnull=True).count()
    return result


def _load_archived_tree(
    result: Verification, folder: Path | None, at: int | None
) -> MerkleTree:
    """The tree of the archived records, which are counted in `result`."""
    tree = MerkleTree()
    for period in LogPeriod.objects.exclude(archived_at=None).order_by("number"):
        if folder is not None:
            _check_archived(result, period, folder, tree, at)
        tree = MerkleTree.from_frontier(period.tree or [])
        result.archived = (period.first_seq or 0) + (period.records or 0)
    result.records = result.archived
    if at is not None and at < result.archived and folder is None:
        _add_fault(result, f"the first {at} records are archived: give the folder")
    if at == result.archived:
        result.roots[at] = tree.compute_root()
    return tree


def _check_archived(
    result: Verification,
    period: LogPeriod,
    folder: Path,
    tree: MerkleTree,
    at: int | None,
) -> None:
    """Read the file of an archived period again, and add its records to `tree`."""
    records = period.first_seq or 0
    if records == at:
        result.roots[records] = tree.compute_root()
    path = folder / period.archive_file
    try:
        archives.check_digest(period, path)
        for leaf_hash in archives.read_leaf_hashes(period, path):
            tree.add(leaf_hash)
            records += 1
            if records == at:
                result.roots[records] = tree.compute_root()
    except (archives.BrokenArchive, OSError) as error:
        _add_fault(result, f"{period.archive_file}: {error}")
        return
    if tree.list_frontier() != [(size, root) for size, root in period.tree or []]:
        _add_fault(result, f"{period.archive_file}: its records are not the log's")


def _add_fault(result: Verification, text: str) -> None:
    if len(result.faults) < MOST_FAULTS:
        result.faults.append(text)


def _read_records(
    first: int, last: int | None
) -> Iterator[tuple[LogPosition, LogPayload | None]]:
    """The records up to `last`, in parts, so that a long log needs little memory."""
    start = first
    while last is not None and start <= last:
        part = LogPosition.objects.filter(seq__gte=start, seq__lt=start + CHUNK)
        rows = list(part.select_related("record").order_by("seq"))
        payloads = LogPayload.objects.in_bulk([row.record_id for row in rows])
        for row in rows:
            yield row, payloads.get(row.record_id)
        start += CHUNK


def _list_faults(position: LogPosition, payload: LogPayload | None) -> Iterator[str]:
    row = position.record
    content = bytes(row.leaf)
    if hash_leaf(content) != bytes(position.leaf_hash):
        yield "its content is not what was hashed"
    try:
        leaf = json.loads(content)
        differing = [name for name, same in _compare_columns(row, leaf) if not same]
        private = _list_wrong_texts(leaf, payload)
    except (ValueError, KeyError, TypeError):
        yield "its content cannot be read"
        return
    if differing:
        yield f"the pages show another {', '.join(differing)} than the record has"
    if private:
        yield f"the text of {', '.join(private)} is not the one that was recorded"


def _compare_columns(
    row: LogRecord, leaf: dict[str, Any]
) -> Iterator[tuple[str, bool]]:
    """Each copy of a member of the leaf, and whether it is the same."""
    yield "kind", leaf["kind"] == row.kind
    yield "time", leaf["at"] == log.format_time(row.at)
    yield "proposal", (leaf["proposal"] or "") == row.proposal
    yield "request", (leaf["request"] or "") == row.request
    actor = leaf["actor"]
    yield "actor", (actor["kind"], actor["id"] or "") == (row.actor_kind, row.actor_id)


def _list_wrong_texts(leaf: dict[str, Any], payload: LogPayload | None) -> list[str]:
    """The private members whose text does not give the HMAC in the leaf."""
    if payload is None:
        return []
    data, salt = leaf["data"] or {}, bytes(payload.salt)
    return [
        name
        for name, value in payload.values.items()
        if data.get(name) != log.compute_private_mac(salt, value)
    ]

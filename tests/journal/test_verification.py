"""The check of the stored log finds each kind of change, and nothing in a sound log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction

from journal import log, merkle, sequencer, verification
from journal.models import LogPayload, LogPosition, LogRecord
from tests.journal.test_log import FULL, LEAST

ENTRIES = [FULL, LEAST, FULL, LEAST, FULL]
COPIES = ("at", "proposal", "request", "actor_kind", "actor_id")


@pytest.fixture
def written(transactional_db: None) -> None:
    with transaction.atomic():
        log.append_many(ENTRIES)
    assert sequencer.sequence_records() == len(ENTRIES)


def compute_root(leaves: list[bytes]) -> bytes:
    """The tree hash as RFC 6962, section 2.1 defines it."""
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    left, right = compute_root(leaves[:half]), compute_root(leaves[half:])
    return hashlib.sha256(b"\x01" + left + right).digest()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 9, 100])
def test_the_root_is_that_of_the_rfc(size: int) -> None:
    leaves = [f"leaf {number}".encode() for number in range(size)]
    tree = merkle.MerkleTree()
    for leaf in leaves:
        tree.add(hashlib.sha256(b"\x00" + leaf).digest())
    assert tree.compute_root() == compute_root(leaves).hex()


def test_a_sound_log_has_no_fault_and_one_root(written: None) -> None:
    result = verification.verify_log(at=3)
    leaves = LogRecord.objects.order_by("position__seq").values_list("leaf", flat=True)
    stored = [bytes(leaf) for leaf in leaves]
    assert (result.records, result.waiting, result.faults) == (5, 0, [])
    assert result.root == compute_root(stored).hex()
    assert result.roots[3] == compute_root(stored[:3]).hex()
    with transaction.atomic():
        log.append_many([LEAST])
    assert verification.verify_log().waiting == 1


@pytest.mark.parametrize(
    ("model", "change", "fault"),
    [
        (LogRecord, {"leaf": b"{}"}, "record 2: its content is not what was hashed"),
        (LogRecord, {"kind": "grant.issued"}, "record 2: the pages show another kind"),
        (LogRecord, {"actor_id": "u-9"}, "record 2: the pages show another actor"),
        (LogPayload, {"values": {"reason": "no"}}, "record 2: the text of reason"),
        (LogPosition, {}, "record 2 is missing"),
    ],
)
def test_a_changed_record_is_named(
    written: None, model: Any, change: dict[str, Any], fault: str
) -> None:
    with tampering():
        change_row(model, 2, **change)
        assert verification.verify_log().faults[0].startswith(fault)


def test_the_newest_records_can_be_checked_alone(written: None) -> None:
    with tampering():
        change_row(LogRecord, 0, leaf=b"{}")
        assert verification.verify_log(newest=4).faults == []
        assert verification.verify_log(newest=5).faults != []


def test_a_log_whose_hashes_were_changed_too_has_another_root(written: None) -> None:
    before = verification.verify_log().root
    record = LogRecord.objects.get(position__seq=3)
    columns = {"leaf": bytes(record.leaf), "kind": record.kind}
    columns |= {name: getattr(record, name) for name in COPIES}
    with tampering():
        digest = hashlib.sha256(b"\x00" + bytes(record.leaf)).digest()
        change_row(LogPosition, 2, leaf_hash=digest)
        change_row(LogPayload, 2)
        change_row(LogRecord, 2, **columns)
        after = verification.verify_log()
    assert (after.faults, after.root == before) == ([], False)


@contextmanager
def tampering() -> Iterator[None]:
    """What an administrator of the database could do. It is taken back at the end."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            for model in (LogRecord, LogPayload, LogPosition):
                table = model._meta.db_table
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        yield
        transaction.set_rollback(True)


def change_row(model: Any, seq: int, **columns: Any) -> None:
    """Change a row of the record at this place, or delete it."""
    record = LogRecord.objects.get(position__seq=seq).pk
    rows = model.objects.filter(**{"pk" if model is LogRecord else "record": record})
    if columns:
        rows.update(**columns)
    else:
        rows.delete()

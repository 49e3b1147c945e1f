"""Places are dense, unique, and never given behind a record still to come."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from datetime import UTC, datetime
from functools import partial

import pytest
from django.db import connection, transaction
from structlog.testing import capture_logs

from journal import log, sequencer, tasks
from journal.clock import now
from journal.models import LogPosition, LogRecord

pytestmark = pytest.mark.django_db(transaction=True)

AT = datetime(2026, 3, 1, tzinfo=UTC)


def append(count=1):
    with transaction.atomic():
        log.append_many([log.Entry("a.b", actor=log.SYSTEM, at=AT)] * count)
        return list(LogRecord.objects.order_by("pk"))[-count:]


def places():
    """(seq, xid, id) in the order of seq."""
    rows = LogPosition.objects.order_by("seq")
    return list(rows.values_list("seq", "record__xid", "record_id"))


def assert_dense_and_in_order(count):
    found = places()
    assert [seq for seq, _, _ in found] == list(range(count))
    order = [(int(xid), pk) for _, xid, pk in found]
    assert order == sorted(order)
    assert len(set(order)) == count


class Elsewhere(threading.Thread):
    """Runs on a connection of its own, which it closes; errors come out at join."""

    def __init__(self, work):
        super().__init__()
        self.work, self.error = work, None
        self.start()

    def run(self):
        try:
            self.work()
        except BaseException as error:
            self.error = error
        finally:
            connection.close()

    def join(self, timeout=30):
        super().join(timeout)
        if self.error:
            raise self.error


def test_records_are_placed_from_zero_with_their_leaf_hash():
    append(3)
    assert sequencer.sequence_records() == 3
    assert sequencer.sequence_records() == 0
    assert_dense_and_in_order(3)
    for place in LogPosition.objects.select_related("record"):
        expected = hashlib.sha256(b"\x00" + bytes(place.record.leaf)).digest()
        assert bytes(place.leaf_hash) == expected


def test_a_limit_may_cut_a_transaction_in_two():
    append(5)
    assert [sequencer.sequence_records(2) for _ in range(4)] == [2, 2, 1, 0]
    assert_dense_and_in_order(5)


def find_delay():
    delay = sequencer.find_delay(60)
    assert delay is not None
    return delay


def test_nothing_is_placed_before_an_older_open_transaction_ends():
    opened, may_end = threading.Event(), threading.Event()

    def slow():
        with transaction.atomic():
            append()
            opened.set()
            may_end.wait(10)

    thread = Elsewhere(slow)
    opened.wait(10)
    append(4)  # committed, and younger than the open one
    assert sequencer.sequence_records() == 0
    may_end.set()
    thread.join()
    assert sequencer.sequence_records() == 5
    assert_dense_and_in_order(5)
    assert places()[0][2] == min(LogRecord.objects.values_list("pk", flat=True))


def test_the_session_that_holds_records_back_is_named():
    opened, may_end, held = threading.Event(), threading.Event(), {}

    def hold():
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL application_name = 'nightly report'")
            cursor.execute("SELECT pg_backend_pid(), pg_current_xact_id()")
            held["pid"] = cursor.fetchone()[0]
            opened.set()
            may_end.wait(10)

    thread = Elsewhere(hold)
    opened.wait(10)
    append(3)  # of long ago, by their own time
    assert sequencer.sequence_records() == 0
    delay = find_delay()
    assert (delay.pid, delay.application) == (held["pid"], "nightly report")
    assert (delay.held_back, delay.waiting, delay.since) == (True, 3, AT)
    assert delay.seconds > 60 > delay.open_seconds >= 0
    may_end.set()
    thread.join()
    after = find_delay()
    assert (after.held_back, after.pid, after.waiting) == (False, None, 3)
    assert sequencer.sequence_records() == 3
    assert sequencer.find_delay(60) is None


def test_a_transaction_that_only_reads_holds_no_record_back():
    opened, may_end = threading.Event(), threading.Event()

    def read():
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT count(*) FROM journal_logrecord")
            opened.set()
            may_end.wait(10)

    thread = Elsewhere(read)
    opened.wait(10)
    append(2)
    assert not find_delay().held_back
    assert sequencer.sequence_records() == 2
    may_end.set()
    thread.join()


def test_records_that_are_young_are_not_late():
    with transaction.atomic():
        log.append("a.b", actor=log.SYSTEM, at=now())
    assert sequencer.find_delay(60) is None


def test_a_rolled_back_record_leaves_no_gap():
    append()
    with transaction.atomic():
        append()
        transaction.set_rollback(True)
    append()
    sequencer.sequence_records()
    assert_dense_and_in_order(2)


def test_a_second_sequencer_does_nothing_meanwhile():
    append()
    locked, may_end = threading.Event(), threading.Event()

    def hold():
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [sequencer.LOCK])
            locked.set()
            may_end.wait(10)

    thread = Elsewhere(hold)
    locked.wait(10)
    assert sequencer.sequence_records() == 0
    may_end.set()
    thread.join()
    assert sequencer.sequence_records() == 1


def write_some(seed):
    """40 transactions of 1 to 3 records; some are slow, some roll back."""
    dice = random.Random(seed)
    for _ in range(40):
        with transaction.atomic():
            append(dice.randint(1, 3))
            time.sleep(dice.choice([0, 0, 0, 0.005, 0.02]))
            transaction.set_rollback(dice.random() < 0.1)


def write_slowly():
    for _ in range(6):
        with transaction.atomic():
            append()
            time.sleep(0.1)
            append()


def test_writers_and_sequencers_at_once_never_leave_a_gap():
    stop, seen = threading.Event(), []

    def place():
        while not stop.is_set():
            sequencer.sequence_records(7)
            seen.append(places())

    sequencers = [Elsewhere(place) for _ in range(2)]
    writers = [Elsewhere(partial(write_some, seed)) for seed in range(4)]
    for thread in [*writers, Elsewhere(write_slowly)]:
        thread.join()
    stop.set()
    for thread in sequencers:
        thread.join()
    tasks.sequence()
    final = places()
    assert_dense_and_in_order(LogRecord.objects.count())
    # Whatever anyone saw at any moment is a beginning of the end result.
    assert all(then == final[: len(then)] for then in seen)


def test_the_task_places_a_backlog_in_rounds(monkeypatch):
    monkeypatch.setattr(sequencer, "LIMIT", 10)
    append(25)
    assert tasks.sequence() == 25
    assert tasks.sequence() == 0
    assert_dense_and_in_order(25)


def test_what_cannot_be_placed_holds_back_only_what_is_behind_it():
    append(7)
    fourth = LogRecord.objects.order_by("pk")[3].pk
    with connection.cursor() as cursor:
        cursor.execute(
            f"ALTER TABLE journal_logposition ADD CHECK (record_id <> {fourth})"
        )
    try:
        with capture_logs() as logged:
            assert [sequencer.sequence_records(), sequencer.sequence_records()] == [
                3,
                0,
            ]
        assert [one["event"] for one in logged] == ["sweep.row_failed"]
        assert str(fourth) in str(logged[0]["exc_info"])
    finally:
        with connection.cursor() as cursor:
            cursor.execute(
                "ALTER TABLE journal_logposition"
                " DROP CONSTRAINT journal_logposition_record_id_check"
            )
    assert sequencer.sequence_records() == 4
    assert_dense_and_in_order(7)

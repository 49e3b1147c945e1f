"""Periods of the log: a new month, a restore with lower transaction ids, and load."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from journal import clock, log, periods, restore_epochs, sequencer
from journal.models import LogPeriod, LogPosition, LogRecord
from journal.statements import Statement
from tests.journal.test_sequencer import Elsewhere, append
from tests.stack import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

AT = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def next_month(monkeypatch):
    later = clock.now() + timedelta(days=32)
    monkeypatch.setattr(clock, "now", lambda: later)


def get_newest():
    return LogPeriod.objects.latest("number").number


def read_kinds():
    """(period, kind) of every record that has its place, in the order of the log."""
    assert not LogRecord.objects.filter(position__isnull=True).exists()
    rows = LogPosition.objects.order_by("seq").select_related("record")
    assert [row.seq for row in rows] == list(range(len(rows)))
    first = get_newest()
    return [(row.record_id // periods.BLOCK - first, row.record.kind) for row in rows]


def test_a_new_month_begins_a_period(next_month):
    append(2)
    assert [periods.begin_due_period(), periods.begin_due_period()] == ["month", ""]
    append()
    assert sequencer.sequence_records(3) == 3
    assert sequencer.sequence_records() == 1
    began = (0, "log.period_began")
    assert read_kinds() == [(-1, "a.b"), (-1, "a.b"), began, (0, "a.b")]
    assert LogPeriod.objects.latest("number").first_seq == 2


def test_nothing_begins_within_a_month():
    append()
    assert periods.begin_due_period() == ""


def add_as_of_another_server(count):
    """What a dump brings: records of a server whose transactions counted far higher,
    the last of them without its place."""
    records = append(count)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO journal_logrecord (kind, at, leaf, proposal, request, agent,"
            " thread, actor_kind, actor_id, xid) SELECT 'old.one', at, leaf, proposal,"
            " request, agent, thread, actor_kind, actor_id, '99999999999'::xid8"
            " FROM journal_logrecord WHERE id = %s",
            [records[-1].pk],
        )


def test_records_of_a_server_that_counts_from_below_come_after_the_old_ones():
    add_as_of_another_server(1)
    placed = LogPeriod.objects.create(  # closes the period, so that all is placed
        number=get_newest() + 1, why="month"
    )
    sequencer.sequence_records()
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        placed.delete()
        cursor.execute("SET session_replication_role = origin")
    append()  # its transaction id is below that of the last one placed
    assert sequencer.sequence_records() == 0
    assert periods.begin_due_period() == "counter"
    append()
    sequencer.sequence_records()
    began = (0, "log.period_began")
    old = [(-1, "a.b"), (-1, "old.one")]
    assert read_kinds() == [*old, (-1, "a.b"), began, (0, "a.b")]
    assert periods.begin_due_period() == ""


def test_what_the_other_server_had_not_placed_comes_first():
    add_as_of_another_server(2)
    assert sequencer.sequence_records() == 2  # the horizon is below the third
    assert periods.begin_due_period() == "counter"
    sequencer.sequence_records()
    began = (0, "log.period_began")
    assert read_kinds() == [(-1, "a.b"), (-1, "a.b"), (-1, "old.one"), began]


def test_a_period_that_is_not_begun_after_all_leaves_nothing(next_month):
    before = get_newest()
    with transaction.atomic():
        periods.begin_period(why="month", patience_ms=100)
        transaction.set_rollback(True)
    (record,) = append()
    assert record.pk // periods.BLOCK == before == get_newest()


def test_a_period_waits_for_an_open_writer_and_holds_nobody_up(next_month):
    opened, may_end = threading.Event(), threading.Event()

    def write():
        with transaction.atomic():
            append()
            opened.set()
            may_end.wait(10)

    thread = Elsewhere(write)
    opened.wait(10)
    assert periods.begin_due_period() == ""
    append()
    may_end.set()
    thread.join()
    assert periods.begin_due_period() == "month"


def test_periods_that_begin_under_load_lose_and_double_nothing(monkeypatch):
    stop = threading.Event()

    def write():
        while not stop.is_set():
            with transaction.atomic():
                log.append_many([log.Entry("a.b", actor=log.SYSTEM, at=AT)] * 2)

    def place():
        while not stop.is_set():
            sequencer.sequence_records(50)

    threads = [Elsewhere(work) for work in (write, write, write, place)]
    before = get_newest()
    for _ in range(3):
        later = clock.now() + timedelta(days=32)
        monkeypatch.setattr(clock, "now", lambda later=later: later)
        wait_until(lambda: periods.begin_due_period() == "month", 20)
    stop.set()
    for thread in threads:
        thread.join()
    while sequencer.sequence_records():
        pass
    assert get_newest() == before + 3
    kinds = read_kinds()
    assert len(kinds) == LogRecord.objects.count()
    assert [number for number, _ in kinds] == sorted(number for number, _ in kinds)


def test_a_period_after_a_restore_is_above_the_lost_numbers():
    lost = (get_newest() + 4) * periods.BLOCK + 17
    with transaction.atomic():
        begun = periods.begin_period_after_restore(above=lost)
    (record,) = append()
    assert record.pk > lost
    assert record.pk // periods.BLOCK == begun.number == get_newest()


def test_the_gate_s_state_is_read_from_few_of_sixty_periods():
    with transaction.atomic(), connection.cursor() as cursor:
        newest = get_newest()
        for number in range(newest + 1, newest + 60):
            cursor.execute("SELECT journal_create_period(%s)", [number])
            LogPeriod.objects.create(number=number, why="month")
        plan = Statement(f"EXPLAIN SELECT {restore_epochs.COLUMNS}").fetch_all(record=1)
        text = "\n".join(line for (line,) in plan)
        transaction.set_rollback(True)
    assert len(set(re.findall(r"on (journal_logrecord_\d+)\b", text))) <= 2, text
    assert "Subplans Removed: " in text


def test_only_the_sequencer_says_where_a_period_begins_and_once(next_month):
    periods.begin_due_period()
    append()
    sequencer.sequence_records()
    for changes in ({"first_seq": 7}, {"why": "x"}, {"began_at": AT}):
        with pytest.raises(DatabaseError, match="refused"), transaction.atomic():
            LogPeriod.objects.filter(number=get_newest()).update(**changes)
    with pytest.raises(DatabaseError, match="kept"), transaction.atomic():
        LogPeriod.objects.all().delete()

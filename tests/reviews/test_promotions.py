"""A standby that took over goes on by itself only where nothing can be lost: each
condition alone stops the gate, and says which it was."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import pytest
from django.db import connection

from journal import failover, high_water_mark, restore_epochs
from journal.models import Epoch, LogRecord, Promotion
from journal.statements import Statement
from reviews import recovery
from reviews.choices import AlarmKind
from reviews.models import Alarm
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews.backups import seen

pytestmark = [
    pytest.mark.usefixtures("own_note", "synchronous"),
    pytest.mark.django_db(transaction=True),
]
STREAMED = failover._STREAMED
BEFORE = "00000000"  # the timeline before that of the tests' server


@pytest.fixture
def synchronous(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The setting, and a server that was a streaming standby: the proof in network
    namespaces has real ones (tests/journeys/test_hosts.py)."""
    changes = {"failover": "synchronous"}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changes)
    monkeypatch.setattr(failover, "_STREAMED", Statement("SELECT true"))
    monkeypatch.setattr(failover, "_waiting", failover.Waiting())
    yield
    failover.last_replication.synchronous = None


def change_note(**changes: Any) -> None:
    note = failover.read_note()
    assert note is not None
    text = json.dumps({**asdict(note), **changes})
    failover.build_note_path().write_text(text)


def change_mark(**changes: Any) -> None:
    now = seen()
    high_water_mark.build_mark_path().unlink()
    high_water_mark.write_mark(replace(now, **changes))


def execute(query: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(query)


def add_host(silent: str) -> None:
    execute(
        "INSERT INTO journal_host VALUES ('other', 'other', '00000000', now(), 1,"
        f" clock_timestamp() - interval '{silent}')"
    )


@pytest.fixture
def promoted(gate: Gate, synchronous: None) -> None:
    """A host whose newest record is here, and who knows an earlier timeline."""
    propose(gate.agent)
    assert recovery.watch_for_restore() == ""
    change_mark(timeline=BEFORE)
    change_note(timeline=BEFORE, synchronous=True)
    execute(f"UPDATE journal_host SET timeline = '{BEFORE}'")


def test_with_all_notes_found_the_gate_goes_on_and_people_hear_of_it(
    promoted: None,
) -> None:
    assert restore_epochs.find_halt_reason() == restore_epochs.ANOTHER
    assert recovery.watch_for_restore() == ""
    assert restore_epochs.find_halt_reason() == ""
    assert not Epoch.objects.filter(began_at=None).exists()
    promotion, record = Promotion.objects.get(), LogRecord.objects.latest("id")
    kept = LogRecord.objects.get(kind="database.promoted")
    assert (kept.data["from_timeline"], kept.data["timeline"]) == (0, 1)
    assert promotion.record < kept.pk <= seen().record <= record.pk
    assert seen().timeline == promotion.timeline
    assert Alarm.objects.get().kind == AlarmKind.PROMOTED
    assert recovery.watch_for_restore() == ""
    assert Promotion.objects.count() == 1


CONDITIONS: dict[str, tuple[Callable[[], object], str]] = {
    "another server": (lambda: change_mark(system="7"), restore_epochs.ANOTHER),
    "a former server": (
        lambda: change_mark(timeline="00000009"),
        failover.OLDER_TIMELINE,
    ),
    "another record": (lambda: change_mark(leaf="00" * 32), restore_epochs.BEHIND),
    "no standby waited for": (
        lambda: change_note(synchronous=False),
        failover.NOT_SYNCHRONOUS,
    ),
    "a note of another timeline": (
        lambda: change_note(timeline="00000007"),
        failover.NOT_SYNCHRONOUS,
    ),
    "an old note": (
        lambda: os.utime(failover.build_note_path(), (0, 0)),
        failover.UNWATCHED,
    ),
    "a beat that is gone": (lambda: change_note(beats=999), restore_epochs.BEHIND),
    "a host that is gone": (
        lambda: execute("DELETE FROM journal_host"),
        restore_epochs.BEHIND,
    ),
}


@pytest.mark.parametrize(("change", "why"), CONDITIONS.values(), ids=list(CONDITIONS))
def test_each_condition_alone_stops_it(
    promoted: None, change: Callable[[], object], why: str
) -> None:
    change()
    assert recovery.watch_for_restore() == why
    assert Epoch.objects.get(began_at=None).why == why
    assert not Promotion.objects.exists()
    assert recovery.watch_for_restore() == restore_epochs.TOLD


def test_so_does_a_server_that_was_no_standby(
    promoted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failover, "_STREAMED", STREAMED)
    assert recovery.watch_for_restore() == failover.NOT_STREAMED


def test_and_a_host_that_does_not_answer(
    promoted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_host("10 seconds")
    recovery.record_promotion()
    assert not Promotion.objects.exists()
    assert recovery.watch_for_restore() == failover.WAITING
    assert restore_epochs.find_halt_reason() == restore_epochs.ANOTHER
    assert not Epoch.objects.filter(began_at=None).exists()
    monkeypatch.setattr(failover, "PATIENCE_S", -1.0)
    assert recovery.watch_for_restore() == failover.HOSTS_MISSING


def test_but_not_one_that_was_silent_long_before(promoted: None) -> None:
    add_host("5 minutes")
    assert recovery.watch_for_restore() == ""


def test_the_broker_does_not_hide_a_note_that_is_gone(
    promoted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others went on, and the broker has their note, whose record is here."""
    assert recovery.watch_for_restore() == ""
    later = seen()
    change_mark(timeline=BEFORE, record=later.record - 1, leaf="00" * 32)
    monkeypatch.setattr(high_water_mark, "_exchange_with_broker", lambda mine: later)
    assert recovery.watch_for_restore() == restore_epochs.BEHIND


def test_nothing_changes_without_the_setting(promoted: None, settings: Any) -> None:
    changes = {"failover": "confirm"}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changes)
    assert recovery.watch_for_restore() == restore_epochs.ANOTHER
    assert Epoch.objects.get(began_at=None).why == restore_epochs.ANOTHER


def test_a_beat_says_whether_the_database_waits_for_a_standby(gate: Gate) -> None:
    propose(gate.agent)
    assert recovery.watch_for_restore() == ""
    note = failover.read_note()
    assert note is not None
    assert (note.beats, note.synchronous) == (1, False)
    assert recovery.watch_for_restore() == ""
    assert failover.read_note() == note, "one beat in a few seconds is enough"

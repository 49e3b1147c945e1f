"""After a backup was put back, nothing runs and nobody says yes until two people have
looked; then nothing that may have run runs again (T25)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from agents import reversals
from journal import clock, high_water_mark, log, restore_epochs
from journal.errors import Conflict, DatabaseRestored, NotPermitted, ReasonMissing
from journal.models import Epoch, LogRecord
from reviews import recovery
from reviews.choices import AlarmKind, ExecutionStatus, RequestStatus
from reviews.executions import claims, leases, run
from reviews.models import Alarm
from tests import worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.journal import history
from tests.journeys import dying
from tests.reviews.backups import queued, restore_an_older_one, seen, two_people_look

Q = ExecutionStatus.QUEUED
pytestmark = pytest.mark.usefixtures("own_note")


@pytest.mark.django_db(transaction=True)
def test_who_dies_while_the_epoch_begins_has_not_begun_it(
    gate: Gate, tmp_path: Path
) -> None:
    restore_an_older_one()
    recovery.watch_for_restore()
    recovery.confirm_restore(person=gate.sue, reason="the disk died")
    (tmp_path / "flags").mkdir()
    second = partial(recovery.confirm_restore, person=gate.sam, reason="seen the books")
    assert dying.dies(second, tmp_path / "flags", "epoch_uncommitted")
    assert not LogRecord.objects.filter(kind="epoch.began").exists()
    assert restore_epochs.find_halt_reason()
    second()
    assert LogRecord.objects.filter(kind="epoch.began").count() == 1
    assert restore_epochs.find_halt_reason() == ""


@pytest.mark.django_db
def test_a_new_installation_and_a_restart_are_calm(gate: Gate) -> None:
    assert restore_epochs.find_halt_reason() == ""
    assert recovery.watch_for_restore() == ""
    propose(gate.agent)
    assert recovery.watch_for_restore() == ""
    propose(gate.agent)
    assert seen().record < LogRecord.objects.latest("id").pk
    assert recovery.watch_for_restore() == ""
    assert seen().record == LogRecord.objects.latest("id").pk
    assert not Epoch.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("what", ["system", "database", "timeline"])
def test_another_server_database_or_timeline_is_another(gate: Gate, what: str) -> None:
    propose(gate.agent)
    restore_epochs.advance_mark()
    other: Any = {"system": "7", "database": 7, "timeline": "00000009"}
    now = seen()
    high_water_mark.build_mark_path().unlink()
    high_water_mark.write_mark(replace(now, **{what: other[what]}))
    assert restore_epochs.find_halt_reason() == restore_epochs.ANOTHER


def _now() -> high_water_mark.HighWaterMark:
    place = restore_epochs.build_mark(restore_epochs.load_database_state(None))
    assert place is not None
    return place


@pytest.mark.django_db
def test_another_record_in_the_place_of_the_one_seen_is_another_history(
    gate: Gate,
) -> None:
    """A backup that went on until it passed the place where ours had been."""
    propose(gate.agent)
    restore_epochs.advance_mark()
    now = seen()
    high_water_mark.build_mark_path().unlink()
    high_water_mark.write_mark(replace(now, leaf="00" * 32))
    log.append("test.record", actor=log.SYSTEM, at=clock.now())
    assert restore_epochs.find_halt_reason() == restore_epochs.BEHIND


@pytest.mark.django_db
def test_a_note_that_nobody_can_read_holds_everything(gate: Gate) -> None:
    propose(gate.agent)
    high_water_mark.build_mark_path().write_text("{torn\n")
    with pytest.raises(DatabaseRestored):
        restore_epochs.check_not_restored()
    with pytest.raises(DatabaseRestored):
        restore_epochs.advance_mark()


@pytest.mark.django_db
def test_so_does_one_that_the_disk_does_not_give(gate: Gate) -> None:
    propose(gate.agent)
    high_water_mark.build_mark_path().mkdir()
    assert restore_epochs.find_halt_reason() == restore_epochs.DISK_ERROR
    assert restore_epochs.load_backup_cutoff().until is not None
    assert recovery.watch_for_restore() == restore_epochs.DISK_ERROR
    assert not Epoch.objects.exists(), "nobody need look at the database"
    with pytest.raises(Conflict):
        recovery.confirm_restore(person=gate.sue, reason="all is well")
    high_water_mark.build_mark_path().rmdir()
    assert recovery.watch_for_restore() == ""


@pytest.mark.django_db(transaction=True)
def test_two_people_lead_out_of_a_note_that_nobody_can_read(gate: Gate) -> None:
    propose(gate.agent)
    high_water_mark.build_mark_path().write_text("{torn\n")
    assert recovery.watch_for_restore() == restore_epochs.UNREADABLE
    assert Alarm.objects.get().kind == AlarmKind.RESTORED
    assert recovery.watch_for_restore() == restore_epochs.TOLD
    two_people_look(gate)
    assert recovery.watch_for_restore() == ""
    assert seen() == _now()


@pytest.mark.django_db(transaction=True)
def test_so_they_do_before_any_sweep_has_noticed(gate: Gate) -> None:
    propose(gate.agent)
    high_water_mark.build_mark_path().write_text("{torn\n")
    two_people_look(gate)
    assert restore_epochs.find_halt_reason() == ""


@pytest.mark.django_db
def test_a_note_that_a_full_disk_cut_short_is_not_written(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    propose(gate.agent)
    write, now = os.write, _now()
    for before in (None, now):
        with monkeypatch.context() as full:
            full.setattr(os, "write", lambda file, line: write(file, line[:20]))
            with pytest.raises(OSError, match="cut short"):
                high_water_mark.write_mark(replace(now, record=now.record + 1))
        assert high_water_mark.read_mark() == before, "nothing was restored"
        high_water_mark.write_mark(now)


@pytest.mark.django_db
def test_a_note_that_another_process_set_aside_is_left_alone(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    propose(gate.agent)
    now, locked = _now(), high_water_mark._open_locked
    high_water_mark.build_mark_path().write_text("{torn\n")

    @contextmanager
    def after_another(lock: int) -> Iterator[int]:
        with monkeypatch.context() as theirs:
            theirs.setattr(high_water_mark, "_open_locked", locked)
            high_water_mark.set_aside_corrupt_file()
            high_water_mark.write_mark(now)
        with locked(lock) as file:
            yield file

    monkeypatch.setattr(high_water_mark, "_open_locked", after_another)
    high_water_mark.set_aside_corrupt_file()
    assert high_water_mark.read_mark() == now


@pytest.mark.django_db
def test_a_line_that_a_crash_cut_short_is_none(gate: Gate) -> None:
    propose(gate.agent)
    restore_epochs.advance_mark()
    with high_water_mark.build_mark_path().open("a") as file:
        file.write('{"epoch": 9, "rec')
    assert restore_epochs.find_halt_reason() == ""
    propose(gate.agent)
    restore_epochs.advance_mark()
    assert seen() == _now()


@pytest.mark.django_db
def test_the_note_stays_short_and_keeps_the_furthest(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(high_water_mark, "MAX_FILE_BYTES", 2000)
    propose(gate.agent)
    base = _now()
    for number in (5, 9, 7, *range(10, 40)):
        high_water_mark.write_mark(replace(base, record=number))
    assert seen().record == 39
    assert high_water_mark.build_mark_path().stat().st_size < 2500


@pytest.mark.django_db
def test_while_it_waits_for_two_people_nothing_is_claimed_decided_or_proposed(
    gate: Gate,
) -> None:
    execution, request = queued(gate), propose(gate.agent, thread="t-2").request
    done = propose(gate.agent, "tag", thread="t-4").executions.get()
    run.run_execution(done.pk)
    before = worlds.effects()
    restore_an_older_one()
    with pytest.raises(DatabaseRestored):
        reversals.propose_reversal(
            execution_id=done.pk, person=gate.tom, reason="wrong one"
        )
    with pytest.raises(DatabaseRestored):
        claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    with pytest.raises(DatabaseRestored):
        run.run_execution(execution.pk)
    with pytest.raises(DatabaseRestored):
        decide(request, gate.rita)
    with pytest.raises(DatabaseRestored):
        propose(gate.agent, thread="t-3")
    request.refresh_from_db()
    execution.refresh_from_db()
    assert (request.status, execution.status) == (RequestStatus.PENDING, Q)
    assert worlds.effects() == before


@pytest.mark.django_db
def test_it_is_noticed_once_with_an_alarm_and_every_host_hears_of_it(
    gate: Gate, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    propose(gate.agent)
    restore_an_older_one()
    assert recovery.watch_for_restore() == restore_epochs.BEHIND
    assert recovery.watch_for_restore() == restore_epochs.TOLD
    assert Epoch.objects.get().began_at is None
    assert Alarm.objects.get(kind=AlarmKind.RESTORED).times == 1
    monkeypatch.setattr(
        high_water_mark, "build_mark_path", lambda: tmp_path / "another-host"
    )
    assert recovery.watch_for_restore() == restore_epochs.TOLD


@pytest.mark.django_db
def test_two_people_begin_a_new_epoch_and_one_cannot(gate: Gate) -> None:
    propose(gate.agent)
    with pytest.raises(Conflict):
        recovery.confirm_restore(person=gate.sue, reason="nothing happened")
    restore_an_older_one()
    for person in (gate.rita, gate.owen):
        with pytest.raises(NotPermitted):
            recovery.confirm_restore(person=person, reason="let me")
    with pytest.raises(ReasonMissing):
        recovery.confirm_restore(person=gate.sue, reason=" ")
    recovery.confirm_restore(person=gate.sue, reason="the disk died")
    with pytest.raises(Conflict):
        recovery.confirm_restore(person=gate.sue, reason="again")
    assert restore_epochs.find_halt_reason()
    highest = seen().record
    epoch = recovery.confirm_restore(person=gate.sam, reason="seen the books")
    assert (epoch.number, epoch.from_record) == (2, highest)
    restore_epochs.accept_epoch()
    assert restore_epochs.find_halt_reason() == ""
    began = LogRecord.objects.get(kind="epoch.began")
    assert began.pk > highest
    assert seen().epoch == 2
    assert Alarm.objects.get(kind=AlarmKind.RESTORED).status == "closed"


@pytest.mark.django_db
def test_one_person_begins_a_new_epoch_in_solo_mode(gate: Gate, settings: Any) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update={"solo": True})
    restore_an_older_one()
    recovery.confirm_restore(person=gate.sue, reason="I copied the folder back")
    restore_epochs.accept_epoch()
    assert restore_epochs.find_halt_reason() == ""
    assert LogRecord.objects.get(kind="epoch.began").data["solo"] is True


@pytest.mark.django_db
def test_a_backup_from_before_the_epoch_is_noticed_as_well(gate: Gate) -> None:
    propose(gate.agent)
    restore_an_older_one()
    two_people_look(gate)
    restore_epochs.accept_epoch()
    with history.past():
        Epoch.objects.all().delete()
    assert restore_epochs.find_halt_reason() == restore_epochs.BEHIND
    assert restore_epochs.compute_next_epoch() == 3


@pytest.mark.django_db
def test_a_full_disk_under_the_note_runs_nothing_and_tries_again(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = queued(gate, "pay_opaque")

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(leases, "record_outside_database", full)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == (Q, "unwritten")
    assert not worlds.effects()


@pytest.mark.django_db
def test_a_restore_that_is_noticed_during_the_checks_lets_nothing_begin(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution, begin = queued(gate, "pay_opaque"), leases.begin_attempt

    def begin_then_notice(claim: claims.Claim) -> None:
        begin(claim)
        Epoch.objects.create(number=2, noticed_at=clock.now(), why="told")

    monkeypatch.setattr(leases, "begin_attempt", begin_then_notice)
    with pytest.raises(DatabaseRestored):
        run.run_execution(execution.pk)
    assert not worlds.effects()


@pytest.mark.django_db
def test_the_command_takes_two_people(gate: Gate) -> None:
    propose(gate.agent)
    restore_an_older_one()
    call_command("restored", by="sue", reason="the disk died")
    with pytest.raises(CommandError):
        call_command("restored", by="sue", reason="again")
    call_command("restored", by="sam", reason="seen the books")
    assert Epoch.objects.get().number == 2


@pytest.mark.django_db
def test_readyz_tells_of_it_and_stays_ready_for_its_pages(
    gate: Gate, client: Client
) -> None:
    propose(gate.agent)
    restore_an_older_one()
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "restored")

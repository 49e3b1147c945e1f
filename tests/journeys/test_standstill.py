"""A worker that stands still is said at /readyz, by an alarm and on the page, whatever
the cause; and it is unsaid when it works again (I25). So is a log that an open
transaction holds back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx2
import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.template.loader import render_to_string
from pytest_django import Settings

from hitl.celery import SWEEPS
from hitl.local.process import Child
from journal import clock, heartbeats, sequencer
from journal.sequencer import LogDelay
from reviews import standstills
from reviews.choices import AlarmKind
from reviews.models import Alarm, Execution
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.journeys.test_fail_open import signed_in
from tests.stack import Stack, wait_until

LIMIT_S = 15  # instead of 40: the same comparison, sooner
SAID_S = 60.0
NOT_EXECUTED = "Approved actions are not being executed."
STOPPED = "Background work has stopped."
LOG_STALL = 'data-testid="log-stall"'
servers = [
    pytest.mark.servers,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def early(_stack: Stack) -> Iterator[None]:
    """The web process that `live` starts says early that nothing works."""
    _stack.kill_web()
    _stack.extra["STANDSTILL_SECONDS"] = str(LIMIT_S)
    yield
    del _stack.extra["STANDSTILL_SECONDS"]
    _stack.kill_web()


@pytest.fixture
def watching(early: None, gate: Gate, live: Stack) -> Stack:
    return live


def readyz(stack: Stack) -> dict[str, str]:
    found: dict[str, str] = httpx2.get(
        f"{stack.base_url}/readyz", trust_env=False
    ).json()
    return found


def says(stack: Stack, name: str) -> bool:
    """Whether /readyz says that this stands still."""
    found = readyz(stack)
    return found["status"] == "degraded" and found[name] != "ok"


def page(stack: Stack, session: str, path: str = "/queue/") -> str:
    headers = {"Cookie": session}
    answer = httpx2.get(f"{stack.base_url}{path}", headers=headers, trust_env=False)
    assert answer.status_code == 200
    return answer.text


def standing() -> set[str]:
    found = Alarm.objects.filter(kind=AlarmKind.STANDSTILL, status="open")
    return set(found.values_list("subject", flat=True))


def runs(stack: Stack) -> bool:
    """Whether every sweep that is not rare has run, as the web process sees it."""
    quick = {name for name, period in SWEEPS.items() if period <= LIMIT_S}
    return readyz(stack)["status"] == "ok" and quick <= heartbeats.compute_ages().keys()


def start_serving(stack: Stack, queues: str) -> None:
    """A worker with a beat that serves these queues only."""
    program = stack._worker(beat=True, processes=1)
    stack.workers.append(Child(replace(program, argv=[*program.argv, "-Q", queues])))


class TestWorker:
    pytestmark = servers

    def test_a_frozen_worker_is_said_and_unsaid(
        self, gate: Gate, watching: Stack
    ) -> None:
        worker = watching.start_worker(processes=1)
        wait_until(lambda: runs(watching), SAID_S, lambda: watching.log("web"))
        os.killpg(worker.pid, signal.SIGSTOP)
        wait_until(
            lambda: says(watching, "effects") and says(watching, "sweeps"), SAID_S
        )
        wait_until(lambda: standing() == {"effects", "sweeps"}, SAID_S)
        for session in (signed_in(gate.sue), signed_in(gate.rita)):
            wait_until(lambda: STOPPED in page(watching, session), SAID_S)  # noqa: B023
            assert NOT_EXECUTED in page(watching, session)
        os.killpg(worker.pid, signal.SIGCONT)
        # The alarm closes after the sweeps it names have run, which may be later than
        # the first answer "ok".
        wait_until(
            lambda: readyz(watching)["status"] == "ok" and standing() == set(), SAID_S
        )
        session = signed_in(gate.sue)
        wait_until(
            lambda: 'data-testid="standstill"' not in page(watching, session), SAID_S
        )

    def test_a_queue_that_nobody_serves_is_said(
        self, gate: Gate, watching: Stack
    ) -> None:
        start_serving(watching, "celery")
        wait_until(lambda: says(watching, "effects"), SAID_S)
        # On a busy machine others are late beside it, for a while.
        assert standstills.PULSE_TASK in readyz(watching)["sweeps"]
        assert NOT_EXECUTED in page(watching, signed_in(gate.sue))

    def test_sweeps_that_nobody_sends_are_said(
        self, gate: Gate, watching: Stack
    ) -> None:
        """The beat is dead; the worker lives."""
        watching.start_worker(beat=False, processes=1)
        wait_until(lambda: says(watching, "sweeps"), SAID_S)
        session = signed_in(gate.sue)
        wait_until(lambda: STOPPED in page(watching, session), SAID_S)


@contextmanager
def open_transaction(name: str) -> Iterator[int]:
    """A transaction of another program that has written and stays open; its pid."""
    url = settings.COUNTERSEAL.database_url
    target = str(connection.settings_dict["NAME"])
    with psycopg.connect(url, dbname=target, application_name=name) as held:
        held.execute("SELECT pg_current_xact_id()")
        yield held.info.backend_pid


def is_log_held_back() -> bool:
    return standstills.known.log is not None


def log_alarms(status: str) -> list[Alarm]:
    return list(Alarm.objects.filter(kind=AlarmKind.LOG_STALLED, status=status))


class TestLog:
    pytestmark = servers

    def test_a_log_that_a_transaction_holds_back_is_said_and_unsaid(
        self, gate: Gate, watching: Stack
    ) -> None:
        watching.start_worker(processes=1)
        wait_until(lambda: runs(watching), SAID_S, lambda: watching.log("web"))
        with open_transaction("<b>nightly</b> report") as pid:
            propose(gate.agent, "pay", customer="C-1")
            began = time.monotonic()
            wait_until(lambda: says(watching, "log"), SAID_S)
            wait_until(lambda: bool(log_alarms("open")), SAID_S)
            assert time.monotonic() - began < SAID_S
            (alarm,) = log_alarms("open")
            assert alarm.data["pid"] == pid
            assert alarm.data["application"] == "<b>nightly</b> report"
            assert alarm.data["waiting"] >= 1
            found = readyz(watching)
            assert str(pid) not in found["log"]
            assert "nightly" not in found["log"]
            shown = page(watching, signed_in(gate.sue))
            assert "The audit log has stalled." in shown
            assert f">{pid}</span>" in shown
            assert "&lt;b&gt;nightly&lt;/b&gt; report" in shown
            assert LOG_STALL not in page(watching, signed_in(gate.rita))
            facts = page(watching, signed_in(gate.sue), f"/alarms/{alarm.pk}/")
            assert "Database session (pid)" in facts
            assert "&lt;b&gt;nightly&lt;/b&gt; report" in facts
        wait_until(lambda: readyz(watching)["log"] == "ok", SAID_S)
        wait_until(lambda: bool(log_alarms("closed")), SAID_S)
        assert not log_alarms("open")
        assert LOG_STALL not in page(watching, signed_in(gate.sue))


@pytest.fixture
def no_patience(settings: Settings) -> None:
    """What waits at all has waited for too long."""
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"standstill_seconds": 0}
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_patience")
def test_the_log_s_alarm_stands_until_the_log_has_caught_up(gate: Gate) -> None:
    sequencer.sequence_records()
    with open_transaction("report"):
        propose(gate.agent, "pay", customer="C-1")
        for _ in range(2):  # several processes notice it once
            standstills.update_standstill_alarms(periods={}, uptime=0)
        assert is_log_held_back()
        (alarm,) = log_alarms("open")
        assert alarm.times == 1
    standstills.update_standstill_alarms(periods={}, uptime=0)
    assert not is_log_held_back()
    assert log_alarms("open") == [alarm]  # no position was assigned yet
    sequencer.sequence_records()
    standstills.update_standstill_alarms(periods={}, uptime=0)
    assert [one.pk for one in log_alarms("closed")] == [alarm.pk]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_patience")
def test_a_log_that_no_sweep_numbers_has_no_alarm_of_its_own(gate: Gate) -> None:
    propose(gate.agent, "pay", customer="C-1")
    standstills.update_standstill_alarms(periods={}, uptime=0)
    assert not is_log_held_back()
    assert not log_alarms("open")


def test_a_prepared_transaction_belongs_to_no_session() -> None:
    since = datetime(2026, 3, 1, tzinfo=UTC)
    delay = LogDelay(since, 130.0, True, sequencer.MOST_COUNTED, None, "", None)
    state = standstills.StandstillState(log=delay)
    shown = " ".join(render_to_string("_log_stall.html", {"stall": state}).split())
    assert "(100,000 or more, the oldest for 2 minutes)" in shown
    assert "The transaction is a prepared one and belongs to no session." in shown


FRESH = dict.fromkeys(SWEEPS, 1.0)
PERFORMED = standstills.EFFECT_TASKS[0]


def test_a_sweep_alone_that_does_not_end_is_late() -> None:
    ages = {**FRESH, "hitl.tasks.expire_due": 41.0}
    late = standstills.list_late_sweeps(ages, SWEEPS, 40)
    assert late == ("hitl.tasks.expire_due",)
    rare = {**FRESH, "hitl.tasks.watch": 80.0}  # every 30 s
    assert standstills.list_late_sweeps(rare, SWEEPS, 40) == ()
    assert standstills.list_late_sweeps(FRESH, SWEEPS, 40) == ()
    assert set(standstills.list_late_sweeps({}, SWEEPS, 40)) == set(SWEEPS)


@pytest.mark.django_db
def test_effects_that_are_due_and_are_not_taken_up_are_late(gate: Gate) -> None:
    served = {standstills.PULSE_TASK: 1.0, PERFORMED: 300.0}
    assert standstills.compute_effects_delay(served, 40) == 0
    request = propose(gate.agent, "pay", customer="C-1").request
    decide(request, gate.rita)
    before = clock.now() - timedelta(seconds=90)
    Execution.objects.update(due_at=before)
    assert standstills.compute_effects_delay(served, 40) >= 90
    assert standstills.compute_effects_delay({**served, PERFORMED: 5.0}, 40) == 0


@pytest.mark.django_db
def test_nothing_is_late_while_everything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(standstills, "known", standstills.StandstillState())
    limit = settings.COUNTERSEAL.standstill_seconds
    standstills.update_standstill_alarms(periods=SWEEPS, uptime=limit - 1)
    assert standstills.known == standstills.StandstillState()
    assert not Alarm.objects.exists()
    for _ in range(2):  # several processes notice it once
        standstills.update_standstill_alarms(periods=SWEEPS, uptime=limit + 1)
    assert standstills.known.every_sweep
    assert "hitl.tasks.prune" not in standstills.known.sweeps  # it is rare
    assert list(Alarm.objects.values_list("times", flat=True)) == [1, 1]


@pytest.mark.django_db
def test_a_process_that_has_just_begun_closes_no_alarm_before_it_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(standstills, "known", standstills.StandstillState())
    rare = "hitl.tasks.watch"
    ages = {**dict.fromkeys(SWEEPS, 1.0), rare: 900.0}
    monkeypatch.setattr(heartbeats, "compute_ages", lambda: ages)
    for uptime in (1000.0, 50.0, 1.0):
        standstills.update_standstill_alarms(periods=SWEEPS, uptime=uptime)
        assert standing() == {"sweeps"}
    assert Alarm.objects.get().data == {"sweeps": [rare]}
    ages[rare] = 1.0
    standstills.update_standstill_alarms(periods=SWEEPS, uptime=1.0)
    assert standing() == set()

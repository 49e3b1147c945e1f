"""Workarounds for faults of Celery and its libraries: what each does, that its fault is
still there, and that its docstring and docs/operations.md tell of it.

The broker outage itself is in tests/journeys/test_fail_open.py.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import struct
from datetime import timedelta
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import pytest
from celery.app.defaults import DEFAULTS
from celery.beat import Scheduler
from celery.concurrency.asynpool import ResultHandler
from kombu.asynchronous import Hub
from kombu.connection import Connection
from packaging.version import Version

from hitl import broker_messages, celery_workarounds
from hitl.celery import SWEEPS, Sweeper, app
from hitl.celery_workarounds import (
    CONSUMER_STEPS,
    WORKER_STEPS,
    ClockStepScheduler,
    LostAckStep,
    PartialResultStep,
    TrackedMessage,
)
from tests.guards import ROOT

LOGGER = logging.getLogger(__name__)
ERRORS = (OSError,)
SWEEP = "journal.tasks.sweep_outbox"
PARTS = ("Symptom: ", "Upstream: ", "Needed with: ", "Remove when: ")
CONFIRMED = re.compile(r"(\w+) up to (\d[\d.]*\d)")
ISSUE = re.compile(r"celery/\w+#\d+")


def list_workarounds() -> dict[str, str]:
    """The docstring of each workaround, by its name."""
    found = {
        name: re.sub(r"\s+", " ", value.__doc__)
        for module in (celery_workarounds, broker_messages)
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__ and value.__doc__
    }
    return {name: text for name, text in found.items() if "Symptom: " in text}


WORKAROUNDS = list_workarounds()


def test_every_worker_takes_these_steps() -> None:
    assert set(WORKER_STEPS) <= app.steps["worker"]
    assert set(CONSUMER_STEPS) <= app.steps["consumer"]
    steps = (*WORKER_STEPS, *CONSUMER_STEPS, *broker_messages.CONSUMER_STEPS)
    assert {step.__name__ for step in steps} <= set(WORKAROUNDS)


@pytest.mark.parametrize("name", WORKAROUNDS)
def test_no_installed_release_is_newer_than_the_one_that_was_read(name: str) -> None:
    """When this fails: read the new release at the places that the docstring names,
    then remove the workaround or raise the version in its docstring."""
    text = WORKAROUNDS[name]
    assert [part for part in PARTS if part not in text] == []
    confirmed = CONFIRMED.findall(text)
    assert confirmed
    for package, newest in confirmed:
        assert Version(version(package)) <= Version(newest), (name, package)


def test_the_manual_lists_each_workaround_and_its_issues() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \|(.*)$", text, re.M))
    for name, docstring in WORKAROUNDS.items():
        assert set(ISSUE.findall(rows[name])) <= set(ISSUE.findall(docstring)), name
        assert ("none" in rows[name]) == ("No issue describes it." in docstring), name


def worker(connection: Connection) -> Any:
    """As much of Celery's consumer as the steps use."""
    channel = connection.channel()
    return SimpleNamespace(
        hub=Hub(), connection=connection, task_consumer=SimpleNamespace(channel=channel)
    )


def broken(*args: Any, **kwargs: Any) -> None:
    raise ConnectionResetError


@pytest.mark.parametrize("verb", ["ack_log_error", "reject_log_error"])
def test_a_message_that_cannot_be_given_back_ends_the_connection(verb: str) -> None:
    with Connection("memory://") as connection:
        parent = worker(connection)
        LostAckStep(parent).start(parent)
        channel = parent.task_consumer.channel
        message = channel.Message({"properties": {"delivery_tag": "1"}}, channel)
        assert isinstance(message, TrackedMessage)
        channel.basic_ack = channel.basic_reject = broken
        getattr(message, verb)(LOGGER, ERRORS)
        with pytest.raises(ConnectionError, match="given back"):
            parent.hub.fire_timers(propagate=ERRORS)


def test_kombu_still_swallows_a_failed_acknowledgement() -> None:
    with Connection("memory://") as connection:
        channel = connection.channel()
        message = channel.Message({"properties": {"delivery_tag": "1"}}, channel)
        channel.basic_ack = broken
        message.ack_log_error(LOGGER, ERRORS)
        assert not message.acknowledged


def test_what_an_older_connection_lost_does_not_end_the_next() -> None:
    with Connection("memory://") as connection:
        parent = worker(connection)
        LostAckStep(parent).start(parent)
        parent.task_consumer.channel.lost()
        parent.connection = None
        parent.hub.fire_timers(propagate=ERRORS)


def pool(hub: Hub, pipe: int) -> Any:
    """Celery's own reader of what the pool's processes say, at one pipe."""
    results = ResultHandler.__new__(ResultHandler)
    process = SimpleNamespace(outq=SimpleNamespace(_reader=None))
    results.fileno_to_outq = {pipe: process}
    results._hub, results.handle_event = hub, print
    return SimpleNamespace(_pool=SimpleNamespace(_result_handler=results))


def seen_after_reset(*, step: bool) -> list[str]:
    """The results that Celery sees when the connection breaks in the middle of one."""
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    seen: list[str] = []
    hub = Hub()
    parent = SimpleNamespace(hub=hub, pool=pool(hub, ours))
    if step:
        PartialResultStep(parent).start(parent)
    body = pickle.dumps("a long result")
    os.write(theirs, struct.pack(">i", len(body)) + body[:5])
    results = parent.pool._pool._result_handler
    reading = results._recv_message(hub.add_reader, ours, seen.append)
    next(reading)
    hub.add_reader(ours, reading)
    os.write(theirs, body[5:])
    hub.reset()
    assert hub.readers == {}
    os.close(ours)
    os.close(theirs)
    return seen


def test_a_result_that_is_half_read_is_read_to_its_end() -> None:
    assert seen_after_reset(step=True) == ["a long result"]


def test_celery_still_forgets_a_result_that_is_half_read() -> None:
    assert seen_after_reset(step=False) == []


def test_celery_still_has_no_setting_for_gossip_and_mingle() -> None:
    assert "worker_enable_remote_control" in DEFAULTS
    assert not [name for name in DEFAULTS if "gossip" in name or "mingle" in name]


def seconds_to_next_sweep(
    scheduler: type[Scheduler], monkeypatch: pytest.MonkeyPatch
) -> float:
    """How long a beat waits after its host's clock was set back by an hour."""
    beat = scheduler(app, lazy=True)
    beat.data = {}
    beat.update_from_dict({SWEEP: {"task": SWEEP, "schedule": SWEEPS[SWEEP]}})
    monkeypatch.setattr(beat, "apply_entry", lambda entry, **options: None)
    beat.tick()
    (entry,) = beat.schedule.values()
    # The same as an earlier time of day: a later last run, and an older offset.
    entry.last_run_at += timedelta(hours=1)
    beat._heap = None
    if isinstance(beat, ClockStepScheduler):
        assert beat._ahead is not None
        beat._ahead += 3600
    waits: float = beat.tick()
    return waits


def test_sweeps_go_on_when_the_clock_was_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert issubclass(Sweeper, ClockStepScheduler)
    waits = seconds_to_next_sweep(ClockStepScheduler, monkeypatch)
    assert waits <= SWEEPS[SWEEP]


def test_celery_still_waits_for_the_old_time_of_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Scheduler, "max_interval", 7200)
    assert seconds_to_next_sweep(Scheduler, monkeypatch) > 3000

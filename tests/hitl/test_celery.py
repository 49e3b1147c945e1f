from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
import threading
import time

import celery
import pytest
from celery.signals import worker_process_init, worker_shutting_down
from django.conf import settings
from kombu.exceptions import OperationalError
from kombu.utils.scheduling import cycle_by_name

from hitl import celery_workarounds, connections
from hitl.celery import SWEEPS, app, freeze_imported_objects
from hitl.celery_workarounds import ShutdownDeadline
from hitl.connections import QUEUES
from notifications.events import CHANNEL_TASKS
from tests.guards import ROOT
from tests.stack import Stack


def test_every_thread_sends_by_our_app() -> None:
    """Web requests run in threads that never imported hitl.celery."""
    found = []
    thread = threading.Thread(target=lambda: found.append(celery.current_app.main))
    thread.start()
    thread.join()
    assert found == ["counterseal"]


def test_every_sweep_is_a_task() -> None:
    app.loader.import_default_modules()
    assert set(SWEEPS) <= set(app.tasks)


def test_what_a_pool_process_has_from_the_start_is_not_collected() -> None:
    assert freeze_imported_objects in {
        ref() for _, ref in worker_process_init.receivers
    }
    imported: list[list[int]] = [[] for _ in range(1000)]
    before = gc.get_freeze_count()
    freeze_imported_objects()
    assert gc.get_freeze_count() >= before + len(imported)


def queue_of(task: str) -> str:
    found: str = app.amqp.router.route({}, task)["queue"].name
    return found


def test_effects_and_sweeps_never_wait_behind_letters() -> None:
    app.loader.import_default_modules()
    ours = [name for name in app.tasks if not name.startswith("celery.")]
    queues = {name: queue_of(name) for name in ours}
    effects = {name for name, queue in queues.items() if queue == connections.EFFECTS}
    assert effects == {
        "hitl.tasks.execute",
        "hitl.tasks.pulse_effects",  # shows that this queue is served
        "hitl.tasks.run_execution",
    }
    letters = {
        name for name, queue in queues.items() if queue == connections.NOTIFICATIONS
    }
    assert set(CHANNEL_TASKS) <= letters
    assert not letters & {*SWEEPS, "hitl.tasks.enforce_stop"}
    assert queue_of("forged.task") == connections.SWEEPS


def test_what_agents_hear_does_not_wait_behind_mails() -> None:
    found = [queue_of(f"agents.tasks.{name}") for name in ("tell", "post")]
    assert found == [connections.OUTCOMES, connections.HOOKS]


def test_who_is_only_asked_waits_in_a_queue_of_their_own() -> None:
    found = {queue_of(f"hitl.tasks.{name}") for name in ("look_up_one", "audit_one")}
    assert found == {connections.INQUIRIES}
    assert connections.INQUIRIES in connections.LOW_PRIORITY


def test_who_is_patient_is_served_when_nobody_else_is_there() -> None:
    strategy = app.conf.broker_transport_options["queue_order_strategy"]
    order = cycle_by_name(strategy)(["hooks", "celery", "notifications", "effects"])
    assert order.consume(4) == ["celery", "effects", "hooks", "notifications"]
    order.rotate("celery")
    order.rotate("hooks")
    assert order.consume(4) == ["effects", "celery", "notifications", "hooks"]


def test_a_worker_serves_every_queue_unless_told_otherwise() -> None:
    assert set(app.amqp.queues.consume_from) == {queue.name for queue in QUEUES}


def test_messages_are_json_and_acknowledged_late() -> None:
    conf = app.conf
    assert conf.accept_content == ["json"]
    assert conf.task_serializer == conf.result_serializer == "json"
    assert conf.task_acks_late
    assert conf.task_reject_on_worker_lost
    assert conf.task_ignore_result
    assert conf.worker_prefetch_multiplier == 1
    assert conf.worker_soft_shutdown_timeout == 2
    assert conf.broker_transport_options["visibility_timeout"] == 120


def test_no_message_is_thrown_away_by_a_clock() -> None:
    """Hosts' clocks differ: what expires here may be new there (T8)."""
    for entry in app.conf.beat_schedule.values():
        assert "options" not in entry
    assert not any(task.expires for task in app.tasks.values())


# What a busy machine may add. A driver without a time limit waits for minutes.
BUSY_S = 15.0


def seconds_to_fail(url: str) -> float:
    """How long a web request would be held up by this broker."""
    other = celery.Celery("other", set_as_current=False)
    other.config_from_object(settings, namespace="CELERY")
    other.conf.broker_url = url
    start = time.monotonic()
    with pytest.raises(OperationalError):
        other.send_task("journal.tasks.sequence", retry=False, ignore_result=True)
    return time.monotonic() - start


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "redis+socket:///nowhere"])
def test_a_dead_broker_does_not_hold_a_request_up(url: str) -> None:
    assert seconds_to_fail(url) < BUSY_S


def test_a_broker_that_says_nothing_holds_a_request_up_for_two_seconds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert seconds_to_fail(f"redis://127.0.0.1:{port}/0") < 2 + BUSY_S


def test_a_worker_that_ends_waits_for_nothing_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ShutdownDeadline in app.steps["worker"]
    monkeypatch.setattr(celery_workarounds, "STOP_WITHIN_S", 0.05)
    child = os.fork()
    if child == 0:
        worker_shutting_down.send(sender="celery@host", sig="SIGTERM", how="Warm")
        threading.Event().wait()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


@pytest.mark.servers
def test_a_worker_and_a_beat_print_nothing_but_lines_of_the_log(live: Stack) -> None:
    """From the start to the end by a signal."""
    environ = {**live.environ, "LOG_FORMAT": "json"}
    environ["PYTHONWARNINGS"] = "ignore"  # Celery has one for root
    command = [sys.executable, "manage.py"]
    for words, last in ((["worker", "--concurrency", "1"], " ready."), (["beat"], "")):
        process = subprocess.Popen(
            [*command, *words],
            cwd=ROOT,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        while last not in lines[-1] and process.poll() is None:
            lines.append(process.stdout.readline())
        process.terminate()
        lines += process.communicate(timeout=30)[0].splitlines()
        for line in filter(str.strip, lines):
            assert json.loads(line)["event"], line

"""Every process of a worker is killed but the worker itself."""

from __future__ import annotations

import signal

import pytest

from chaos import cluster
from hitl.celery import app
from hitl.celery_workarounds import BeatRestartStep
from journal import clock
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest
from tests.conftest import Gate
from tests.factories import propose
from tests.stack import Stack, wait_until

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]


def test_every_worker_looks_after_its_beat() -> None:
    assert BeatRestartStep in app.steps["worker"]


def test_sweeps_go_on_when_the_beat_was_killed(gate: Gate, live: Stack) -> None:
    worker = live.start_worker(processes=1)
    for child in cluster.list_group(worker.pid)[1:]:
        cluster.signal_process(child, signal.SIGKILL)
    wait_until(lambda: "beat_died" in live.log("worker"), 10, lambda: "no word of it")
    request = propose(gate.agent, "pay").request
    due = clock.now()
    ApprovalRequest.objects.filter(pk=request.pk).update(expires_at=due)

    def expired() -> bool:
        request.refresh_from_db()
        return bool(request.status == RequestStatus.EXPIRED)

    wait_until(expired, 15, lambda: live.log("worker"))
    assert worker.exit_code() is None
    live.kill_worker()
    wait_until(lambda: not cluster.list_group(worker.pid), 5, lambda: "one lives on")

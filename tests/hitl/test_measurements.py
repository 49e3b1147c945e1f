"""What all processes count together, over the real web processes and a worker; and what
becomes of it when the broker or a process goes away."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

import httpx2
import pytest
import redis
from django.conf import settings
from prometheus_client.metrics_core import Metric
from pytest_django import Settings

from agents import keys
from hitl import measurements
from hitl.measurements import Measurements, list_measurements
from tests.conftest import Gate
from tests.stack import Stack, wait_until

TOKEN = "a-token-of-prometheus-alone"
FOUR_REQUESTS = (
    ("GET", "api/v1/proposals/<proposal_id>", "404"),
    ("GET", "unknown", "404"),
    ("other", "livez", "405"),
    ("POST", "unrouted", "413"),
)


@pytest.fixture(autouse=True)
def _no_sums() -> None:
    delete_sums()


def delete_sums() -> None:
    with redis.Redis.from_url(settings.COUNTERSEAL.redis_url) as broker:
        broker.delete(measurements.SUMS, measurements.STREAMS)


def read(metrics: object = None) -> dict[tuple[str, ...], float]:
    """Each sample by its name and the values of its labels."""
    families = list(list_measurements()) if metrics is None else metrics
    assert isinstance(families, list)
    return {
        (sample.name, *map(str, sample.labels.values())): sample.value
        for family in families
        if isinstance(family, Metric)
        for sample in family.samples
    }


def wait_for(name: tuple[str, ...], true: Callable[[float], bool]) -> None:
    def list_counters() -> str:
        return str({key: n for key, n in read().items() if key[0].endswith("_total")})

    wait_until(lambda: true(read().get(name, 0)), 60, list_counters)


@pytest.mark.servers
def test_all_processes_count_together(live: Stack, gate: Gate) -> None:
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    other = Stack(live.state, {"METRICS_TOKEN": TOKEN})
    # What this web process counted for other tests would be reported during this one.
    live.kill_web()
    delete_sums()
    live.start_web()
    other.start_web()
    live.start_worker()
    try:
        for web in (live, other):
            with httpx2.Client(base_url=web.base_url, trust_env=False) as client:
                agent = {"Authorization": f"Bearer {key}"}
                client.get("/api/v1/proposals/p-1", headers=agent)
                client.get("/wp-login.php?secret")
                client.request("PROPFIND", "/livez")
                client.post("/api/v1/proposals", content=bytes(1024 * 1024 + 1))
        for labels in FOUR_REQUESTS:
            name = ("counterseal_http_requests_total", *labels)
            wait_for(name, lambda count: count == 2)
        sweep = ("counterseal_task_seconds_count", "hitl.tasks.expire_due")
        wait_for(sweep, lambda count: count > 0)
        before = read()
        other.kill_web()
        live.kill_worker()
        after = read()
        assert not {name for name, count in before.items() if after[name] < count}
        other.start_web()
        answer = httpx2.get(
            f"{other.base_url}/metrics",
            headers={"Authorization": f"Bearer {TOKEN}"},
            trust_env=False,
        )
        for labels in FOUR_REQUESTS[:2]:
            method, route, status = labels
            assert (
                f'counterseal_http_requests_total{{method="{method}",route="{route}",'
                f'status="{status}"}} 2.0' in answer.text
            )
        assert "wp-login" not in answer.text
    finally:
        other.kill_web()


def test_nothing_is_lost_while_the_broker_is_away(settings: Settings) -> None:
    own, reached = Measurements(), settings.COUNTERSEAL
    own.count_streams = lambda: 3
    own.count("task_failures", "a")
    own.observe("task_seconds", 0.3, "a")
    gone = reached.model_copy(update={"redis_url": "unix:///nowhere"})
    settings.COUNTERSEAL = gone
    own.report()
    assert read() == {}
    settings.COUNTERSEAL = reached
    own.count("task_failures", "a")
    own.report()
    own.report()
    found = read()
    assert found["counterseal_task_failures_total", "a"] == 2
    assert found["counterseal_task_seconds_bucket", "a", "0.1"] == 0
    assert found["counterseal_task_seconds_bucket", "a", "0.5"] == 1
    assert found["counterseal_task_seconds_bucket", "a", "+Inf"] == 1
    assert found["counterseal_task_seconds_sum", "a"] == pytest.approx(0.3)
    assert found["counterseal_streams",] == 3
    own.stop_reporting()
    assert read()["counterseal_streams",] == 0


def test_a_child_does_not_report_what_its_parent_counted() -> None:
    own = Measurements()
    own.count("task_failures", "a")
    own.start_reporting()  # as after a fork
    own.stop_reporting()
    assert ("counterseal_task_failures_total", "a") not in read()


def test_what_somebody_else_wrote_into_the_broker_is_left_out() -> None:
    fields = {
        "no json": 1,
        json.dumps(["task_failures", "", "a", "b"]): 1,
        json.dumps(["task_failures", "", ["a"]]): 1,
        json.dumps(["of_another_version", "", "a"]): 1,
        json.dumps(["task_failures", "", "a"]): "many",
        json.dumps([["task_failures"], "", "a"]): 1,
    }
    with redis.Redis.from_url(settings.COUNTERSEAL.redis_url) as broker:
        broker.hset(measurements.SUMS, mapping=fields)
    assert read() == {("counterseal_streams",): 0}


def test_counts_of_several_threads_add_up() -> None:
    own = Measurements()

    def add() -> None:
        for _ in range(2000):
            own.count("task_failures", "a")

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    own.report()
    for thread in threads:
        thread.join()
    own.report()
    assert read()["counterseal_task_failures_total", "a"] == 8000

"""Counters and histograms that all processes of an installation add to.

No scrape could ask each process: several share one port, hosts stand behind one
address, and workers have no port. So each process adds what it counted to a hash of the
broker every few seconds, and any web process reads the sums. A process that ends takes
nothing away; one that is killed loses its last seconds. While the broker is away, each
process keeps what it counted. A broker without its data begins at 0, which Prometheus
takes for a restart.

An answer of the broker that is lost may count some seconds twice. Labels are names from
the code: routes, tasks, methods and statuses, never a path or an id.
"""

from __future__ import annotations

import json
import threading
import uuid
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import redis
from django.conf import settings
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric
from structlog.stdlib import get_logger

from . import connections

SUMS, STREAMS = "counterseal:measurements", "counterseal:streams"
EXCHANGE = "counterseal.exchange"  # in the scope and in the WSGI environment
REPORT_S = 5.0
# Seconds after which the streams of a process that no longer reports are not counted.
REPORTED_S = 30
SUM = "sum"
# One step, so that a report counts wholly or not at all. The broker's clock decides
# which processes still report.
_REPORT = """
for at = 5, #ARGV, 2 do
    redis.call('HINCRBYFLOAT', KEYS[1], ARGV[at], ARGV[at + 1])
end
if ARGV[1] ~= '' then redis.call('ZREM', KEYS[2], ARGV[1]) end
if ARGV[2] ~= '' then
    redis.call('ZADD', KEYS[2], redis.call('TIME')[1] + ARGV[3], ARGV[2])
    redis.call('EXPIRE', KEYS[2], ARGV[4])
end
"""
_READ = """
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', redis.call('TIME')[1])
return {redis.call('HGETALL', KEYS[1]), redis.call('ZRANGE', KEYS[2], 0, -1)}
"""

log = get_logger(__name__)


@dataclass(frozen=True)
class Family:
    """A counter, or a histogram with the upper limits of its buckets in seconds."""

    text: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...] = ()

    @cached_property
    def limits(self) -> tuple[str, ...]:
        return (*map(str, self.buckets), "+Inf")


FAMILIES = {
    "http_requests": Family(
        "Requests that were answered.", ("method", "route", "status")
    ),
    "http_request_seconds": Family(
        "Seconds from a request's head until its answer was sent, without calls that"
        " wait and event streams.",
        ("group",),
        (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    ),
    "task_seconds": Family(
        "Seconds that a run of a worker's task took.",
        ("task",),
        (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    ),
    "task_failures": Family("Runs of a worker's task that failed.", ("task",)),
}


@dataclass(slots=True)
class Exchange:
    """What is known of one request. `waits` marks an event stream, and a call that
    waits for an outcome: their time says nothing about the gate."""

    route: str = ""
    code: int = 0  # of the answer
    waits: bool = False


class Measurements:
    """What this process counted since its last report, and the thread that reports."""

    def __init__(self) -> None:
        self.count_streams: Callable[[], int] = lambda: 0
        self._forget()

    def _forget(self) -> None:
        self._lock, self._report_lock = threading.Lock(), threading.Lock()
        self._added: dict[tuple[str, ...], float] = {}
        self._stop = threading.Event()
        self._process, self._streams_entry = uuid.uuid4().hex, ""
        self._away = False

    def start_reporting(self) -> None:
        """Begin to report. A forked process begins anew: what it inherited is its
        parent's, and a lock may be held by a thread that it does not have."""
        self._forget()
        threading.Thread(target=self._run, name="measurements", daemon=True).start()

    def stop_reporting(self) -> None:
        """Report what is left, and that no stream is open."""
        self._stop.set()
        self.count_streams = lambda: 0
        self.report()

    def count(self, name: str, *labels: str) -> None:
        """Add 1 to a counter."""
        key = (name, "", *labels)
        with self._lock:
            self._added[key] = self._added.get(key, 0) + 1

    def observe(self, name: str, seconds: float, *labels: str) -> None:
        """Add one duration to a histogram."""
        family = FAMILIES[name]
        limit = family.limits[bisect_left(family.buckets, seconds)]
        bucket, total = (name, limit, *labels), (name, SUM, *labels)
        with self._lock:
            self._added[bucket] = self._added.get(bucket, 0) + 1
            self._added[total] = self._added.get(total, 0) + seconds

    def report(self) -> None:
        """Add what was counted to the sums of the installation. Keeps it for the next
        report when the broker is away."""
        with self._report_lock:
            with self._lock:
                added, self._added = self._added, {}
            streams = self.count_streams()
            entry = f"{self._process} {streams}" if streams else ""
            pairs = [part for key, n in added.items() for part in (json.dumps(key), n)]
            try:
                _ask_broker(
                    _REPORT,
                    *(self._streams_entry, entry, REPORTED_S, 2 * REPORTED_S),
                    *pairs,
                )
            except redis.RedisError as error:
                if not self._away:  # one line for an outage, not one every report
                    log.warning("measurements.kept", error=type(error).__name__)
                self._away = True
                with self._lock:
                    for key, n in added.items():
                        self._added[key] = self._added.get(key, 0) + n
            else:
                self._streams_entry, self._away = entry, False

    def _run(self) -> None:
        while not self._stop.wait(REPORT_S):
            self.report()


measurements = Measurements()


def list_measurements() -> Iterator[Metric]:
    """The sums of all processes, for Prometheus; none while the broker is away."""
    try:
        sums, streams = _ask_broker(_READ)
    except redis.RedisError:
        return
    families = _parse_sums(sums)
    for name, family in FAMILIES.items():
        yield _build_family(f"counterseal_{name}", family, families[name])
    gauge = GaugeMetricFamily("counterseal_streams", "Open pages that are kept fresh.")
    gauge.add_metric([], sum(_parse_streams(entry) for entry in streams))
    yield gauge


Sums = dict[tuple[str, ...], dict[str, float]]  # by labels: part -> its sum


def _parse_sums(flat: list[bytes]) -> dict[str, Sums]:
    """The broker's hash by family. Leaves out what no process of this version wrote."""
    families: dict[str, Sums] = {name: {} for name in FAMILIES}
    for key, value in zip(flat[::2], flat[1::2], strict=True):
        with suppress(ValueError, TypeError):
            name, part, *labels = json.loads(key)
            family = FAMILIES.get(name)
            known = family and len(labels) == len(family.labels)
            if known and all(isinstance(label, str) for label in labels):
                families[name].setdefault(tuple(labels), {})[part] = float(value)
    return families


def _build_family(name: str, family: Family, sums: Sums) -> Metric:
    if not family.buckets:
        counter = CounterMetricFamily(name, family.text, labels=family.labels)
        for labels, parts in sorted(sums.items()):
            counter.add_metric(labels, parts.get("", 0))
        return counter
    histogram = HistogramMetricFamily(name, family.text, labels=family.labels)
    for labels, parts in sorted(sums.items()):
        reached, buckets = 0.0, []
        for limit in family.limits:
            reached += parts.get(limit, 0)
            buckets.append((limit, reached))
        histogram.add_metric(labels, buckets, sum_value=parts.get(SUM, 0))
    return histogram


def _parse_streams(entry: bytes) -> int:
    number = entry.rpartition(b" ")[2]
    return int(number) if number.isdigit() else 0


def _ask_broker(script: str, *args: Any) -> Any:
    """Run a script on the broker. Raises redis.RedisError."""
    client = redis.Redis.from_url(
        settings.COUNTERSEAL.redis_url,
        socket_connect_timeout=connections.BROKER_CONNECT_TIMEOUT_S,
        socket_timeout=connections.BROKER_CONNECT_TIMEOUT_S,
    )
    try:
        return client.eval(script, 2, SUMS, STREAMS, *args)
    finally:
        client.close()

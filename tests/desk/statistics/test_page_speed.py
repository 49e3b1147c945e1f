"""The pages of the statistics cost the same however many requests there were: measured
with the stored figures of a million proposals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, timedelta
from pathlib import Path
from statistics import median
from time import process_time_ns

import pytest
from django.db import connection

from journal import clock
from reviews.models import MetricDay, MetricRollup
from stats import rollups
from stats.charts import Group
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.guards import proving
from tests.reviews import states
from tests.stats.generating import generate_past, run_query

DAYS, GENERATED = 90, 2  # the figures of the other days are copies
GOAL_MS = 300
FILTERS = {
    "30 days": "?days=30",
    "90 days": "?days=90",
    "one tool and risk level, 30 days": "?days=30&tool=pay&risk=high",
    "one tool and risk level, 90 days": "?days=90&tool=pay&risk=high",
}
_COPY = """
INSERT INTO reviews_metricrollup (day, measure, tool, risk, bins)
SELECT day - back * %(made)s, measure, tool, risk, bins
FROM reviews_metricrollup, generate_series(1, %(times)s) AS back
"""
# Since its start, in nanoseconds: a process that serves one connection.
_PROCESSOR_TIME = "/proc/{}/schedstat"


@pytest.fixture
def computed(gate: Gate, proof_n: Callable[..., int]) -> tuple[int, list[int]]:
    """The stored figures of so many proposals in 90 days, and how long each generated
    day took to compute, in milliseconds of processor time."""
    n: int = proof_n(small=4_500, full=1_000_000)
    last = clock.now().astimezone(UTC).date()
    deciders = [gate.rita, gate.tom, gate.sue, gate.sam]
    base = states.succeeded(gate)
    generate_past(base, deciders, n * GENERATED // DAYS, days=GENERATED, last=last)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    took = []
    for back in range(GENERATED):
        day = last - timedelta(days=back)
        MetricDay.objects.create(day=day)
        began = read_processor_time()
        assert rollups.compute_day(day=day)
        took.append((read_processor_time() - began) // 1_000_000)
    with connection.cursor() as cursor:
        times = {"made": GENERATED, "times": DAYS // GENERATED - 1}
        cursor.execute(_COPY, times)
        cursor.execute("VACUUM ANALYZE reviews_metricrollup")
    return n, took


def read_processor_time() -> int:
    """What this process and the database's for its connection have used, in
    nanoseconds."""
    ((pid,),) = run_query("SELECT pg_backend_pid()")
    used = Path(_PROCESSOR_TIME.format(pid)).read_text().split()[0]
    return process_time_ns() + int(used)


@pytest.mark.proof
@pytest.mark.django_db(transaction=True)
def test_a_page_of_a_million_requests_is_read_quickly(
    computed: tuple[int, list[int]],
    as_: SignIn,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    n, took = computed
    times = proof_n(small=1, full=9)
    said = ", ".join(f"{one:,}" for one in took)
    record_proof(
        "statistics",
        f"a day of {n // DAYS:,} proposals: computed in {said} ms of processor time",
    )
    stored = MetricRollup.objects.count()
    for label, query in FILTERS.items():
        views = {
            group: median(list(time_views(as_, f"/statistics/{group}/{query}", times)))
            for group in Group
        }
        each = ", ".join(
            f"{group.capitalize()} {ms:.0f}" for group, ms in views.items()
        )
        record_proof(
            "statistics",
            f"pages of {n:,} proposals in {DAYS} days ({stored:,} rows of figures),"
            f" {label}: {each} ms of processor time (medians of {times}; bar"
            f" {GOAL_MS})",
        )
        assert not proving() or max(views.values()) < GOAL_MS, (label, views)


def time_views(as_: SignIn, url: str, times: int) -> Iterator[float]:
    """The milliseconds of processor time of so many views after the first."""
    client = as_("sue")
    for view in range(times + 1):
        began = read_processor_time()
        assert client.get(url).status_code == 200
        if view:
            yield (read_processor_time() - began) / 1_000_000

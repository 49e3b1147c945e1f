"""The statistics: with weeks of requests, narrowed to one tool, and without any."""

from __future__ import annotations

from datetime import timedelta

from journal import clock
from reviews.models import MetricDay
from stats import rollups
from tests.gallery.scene import SceneGroup
from tests.gallery.store import StoreGate
from tests.stats.generating import generate_past

STATISTICS = SceneGroup(
    "statistics", shows=("reviews:statistics", "reviews:statistics_group")
)
NO_STATISTICS = SceneGroup("no-statistics")
DAYS = 30
COUNT = 4_000


@STATISTICS.preparation
def fill_weeks(gate: StoreGate) -> None:
    """Figures of a month, up to yesterday."""
    today = clock.now().date()
    base = gate.perform(gate.approve(gate.refund("27.00")))
    deciders = [gate.rita, gate.tom, gate.sue, gate.sam]
    yesterday = today - timedelta(days=1)
    generate_past(base, deciders, COUNT, days=DAYS - 1, last=yesterday)
    for number in range(DAYS):
        day = today - timedelta(days=number)
        MetricDay.objects.get_or_create(day=day)
        rollups.compute_day(day=day)


STATISTICS.add("outcomes", "never waited for a person", "/statistics/", "sue")
STATISTICS.add("times", "One in ten took longer", "/statistics/times/", "otto")
STATISTICS.add(
    "attention", "Drift within a session", "/statistics/attention/?days=90", "adam"
)
STATISTICS.add("effects", "nobody was asked", "/statistics/effects/?days=7", "sue")
STATISTICS.add(
    "narrowed",
    "right at the first try",
    "/statistics/attention/?tool=tag&risk=high",
    "sue",
)
NO_STATISTICS.add("outcomes", "No run finished", "/statistics/", "sue")

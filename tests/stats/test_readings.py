"""The statistics of stored figures: intervals, percentiles and words."""

from __future__ import annotations

import re

import pytest

from stats.charts import format_rate, format_seconds
from stats.people import DECIDERS
from stats.plots import list_measures, list_plots
from stats.plots.canaries import CANARY_DECIDERS
from stats.readings import Rate, Times
from tests.guards import ROOT


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [
        # Newcombe 1998 (Statistics in Medicine 17, table I), method 3: score intervals.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_is_wilsons(
    count: int, total: int, low: float, high: float
) -> None:
    assert Rate(count, total).interval == pytest.approx((low, high), abs=0.00005)


def test_percentiles_are_the_smallest_time_that_enough_do_not_exceed() -> None:
    times = Times({"7": 1, "30": 8, "110": 1})
    assert (times.total, times.median, times.p90) == (10, 30, 30)
    assert (Times({}).median, Times({"5": 1}).p90) == (None, 5)


def test_a_rate_is_never_without_its_counts() -> None:
    assert format_rate(Rate(6, 50)) == "12 % (6 of 50)"
    assert format_rate(Rate(1, 3)) == "33 % (1 of 3, few)"
    assert format_rate(Rate(1, 500)) == "under 1 % (1 of 500)"
    assert format_rate(Rate(499, 500)) == "over 99 % (499 of 500)"
    assert format_rate(Rate(0, 0)) == "none"
    assert [format_seconds(n) for n in (45, 130, 5400, 183600)] == [
        "45 s",
        "2 min",
        "1 h 30 min",
        "2 d 3 h",
    ]


def test_each_plot_and_measure_has_a_name_of_its_own() -> None:
    plots, measures = list_plots(), list_measures()
    assert len({plot.slug for plot in plots}) == len(plots)
    assert len({(plot.group, plot.place) for plot in plots}) == len(plots)
    used = {id(measure) for plot in plots for measure in plot.measures}
    assert len(used) == len(measures)
    for plot in plots:
        assert {*plot.sliced, *plot.by_risk} <= {*plot.measures}, plot.slug
        counted = [m for m in plot.measures if m in (DECIDERS, CANARY_DECIDERS)]
        assert counted == [m for m in [plot.contributors] if m], plot.slug


def test_each_definition_stands_in_the_manual() -> None:
    page = " ".join((ROOT / "docs" / "metrics.md").read_text().split())
    for plot in list_plots():
        assert plot.definition in page, plot.slug


def test_the_manual_has_a_section_for_each_plot_and_no_page_counts_them() -> None:
    manual = (ROOT / "docs" / "metrics.md").read_text()
    sections = re.findall(r"^### (.+)$", manual, re.MULTILINE)
    assert sorted(sections) == sorted(plot.title for plot in list_plots())
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    counted = re.compile(r"\b\d+ (?:plots|measures)\b")
    found = [page.name for page in pages if counted.search(page.read_text())]
    assert set(found) <= {"proof.md"}, "a count goes stale"

"""Recounts of tables whose cells are more than one stored figure: rates, kappa and
medians per kind, channel and tool. Each is one plain query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from assurance.defects import BY_KIND
from desk.statistics.page import build_charts
from reviews.choices import DefectKind
from stats.charts import format_seconds
from stats.plots import find_plot
from stats.plots.notification_funnel import CHANNELS, STEPS
from stats.readings import FEW
from tests.stats.recounting import NOTICE, NOTICES, Period, round_time

DECIDED = """
    FROM canary_apart r WHERE r.ending = 'decided'
      AND r.ended_at >= :start AND r.ended_at < :end AND :of(r)
"""
AGAIN = """
    FROM reviews_secondreview s JOIN reviews_decision d ON d.id = s.decision_id
    JOIN reviews_approvalrequest r ON r.id = d.request_id
    WHERE s.reviewer_id IS NOT NULL
      AND r.settled_at >= :start AND r.settled_at < :end AND :of(r)
"""
# Labels, then how many of how many, then other numbers.
RATES = {
    "canary-catch": f"""
        SELECT 'Defect', r.defect, count(*) FILTER (WHERE r.caught), count(*)
        {DECIDED} GROUP BY r.defect
        UNION ALL
        SELECT 'Risk', r.risk, count(*) FILTER (WHERE r.caught), count(*)
        {DECIDED} GROUP BY r.risk
    """,
    "speed-and-catch": f"""
        SELECT band, count(*) FILTER (WHERE caught), count(*) FROM (
            SELECT r.caught, CASE WHEN r.took_ms / 1000 < 5 THEN 'under 5 s'
                WHEN r.took_ms / 1000 < 10 THEN '5 to 10 s'
                WHEN r.took_ms / 1000 < 30 THEN '10 to 30 s'
                WHEN r.took_ms / 1000 < 60 THEN '30 to 60 s'
                WHEN r.took_ms / 1000 < 120 THEN '1 to 2 min'
                WHEN r.took_ms IS NOT NULL THEN '2 min and longer' END AS band
            {DECIDED}
        ) AS banded WHERE band IS NOT NULL GROUP BY band
    """,
    "second-reviews": f"""
        SELECT tool, round(total * same)::int, total,
               (same - chance) / nullif(1 - chance, 0)
        FROM (
            SELECT r.tool_name AS tool, count(*) AS total,
                   avg((d.verdict = s.verdict)::int) AS same,
                   avg((d.verdict = 'approve')::int) * avg((s.verdict = 'approve')::int)
                   + avg((d.verdict = 'reject')::int) * avg((s.verdict = 'reject')::int)
                       AS chance
            {AGAIN} GROUP BY r.tool_name
        ) AS agreement
    """,
    "audit-yield": f"""
        SELECT CASE s.cause WHEN 'sample' THEN 'drawn at random'
                    ELSE 'decided before the minimum reading time' END,
               count(*) FILTER (WHERE s.upheld = 'second'), count(*),
               count(*) FILTER (WHERE s.verdict <> d.verdict)
        {AGAIN} GROUP BY s.cause
    """,
}
TITLES: dict[str, str] = {kind: BY_KIND[kind].title for kind in DefectKind}
SHARE = re.compile(r"[0-9.]+ %(, few)?")
QUANTILES = """
    percentile_disc(0.5) WITHIN GROUP (ORDER BY s),
    percentile_disc(0.9) WITHIN GROUP (ORDER BY s), count(*)
"""
WRITTEN = f"""
    SELECT CASE WHEN written THEN 'With' ELSE 'Without' END || ' a written answer',
           tool_name, {QUANTILES}
    FROM (
        SELECT r.tool_name, d.check_asked ? 'written' AS written,
               d.took_ms / 1000.0 AS s
        FROM kept_decision d JOIN reviews_approvalrequest r ON r.id = d.request_id
        WHERE d.took_ms >= 0 AND d.verdict = ANY ('{{approve,modify}}')
          AND r.risk = ANY ('{{high,critical}}')
          AND d.at >= :start AND d.at < :end AND :of(r)
    ) AS approvals GROUP BY 1, 2
"""
Rows = list[tuple[Any, ...]]


def recount_tables(period: Period) -> Iterator[tuple[str, Rows, Rows]]:
    """The plot, its table, and the recount of the table; both sorted."""
    for slug, sql in RATES.items():
        yield (
            slug,
            list_rates(load_table(period, slug)),
            sorted(count_rates(period, sql)),
        )
    shown = sorted(map(tuple, load_table(period, "written-answers")))
    yield "written-answers", shown, sorted(map(format_times, period.fetch(WRITTEN)))
    shown = sorted(map(tuple, load_table(period, "notification-funnel")))
    yield "notification-funnel", shown, sorted(recount_funnel(period))


def load_table(period: Period, slug: str) -> Sequence[Sequence[Any]]:
    """The rows that a supervisor sees."""
    plot = find_plot(slug)
    assert plot
    ((_, chart),) = build_charts([plot], period.filters, alone=True)
    return chart.rows


def list_rates(rows: Sequence[Sequence[Any]]) -> Rows:
    """The rows without the share, which must be that of its counts."""
    found = []
    for row in rows:
        at = next(n for n, cell in enumerate(row) if SHARE.fullmatch(str(cell)))
        share, count, total, *more = row[at:]
        said, _, few = share.partition(" %")
        assert float(said) == pytest.approx(100 * count / total, abs=0.0501), row
        assert bool(few) == (total < FEW), row
        found.append((*row[:at], count, total, *map(read_number, more)))
    return sorted(found)


def read_number(cell: str | int) -> float | None:
    return None if cell == "none" else float(cell)


def count_rates(period: Period, sql: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a query of `RATES`, as `list_rates` gives them."""
    for row in period.fetch(sql):
        labels = [cell for cell in row if isinstance(cell, str)]
        count, total, *more = row[len(labels) :]
        said = [TITLES.get(label, label) for label in labels]
        rest = [None if one is None else float(round(one, 2)) for one in more]
        yield (*said, count, total, *rest)


def recount_funnel(period: Period) -> Iterator[tuple[Any, ...]]:
    """Each step of each channel that has one of the three."""
    found = {}
    for name, interval in NOTICES.items():
        sql = NOTICE.format(interval=interval, channel="true")
        sql = f"SELECT c, {QUANTILES} FROM ({sql}) AS exact GROUP BY c"
        for channel, *numbers in period.fetch(sql):
            found[channel, name] = numbers
    for channel in {channel for channel, _ in found}:
        label = CHANNELS["mail" if channel == "email" else channel]
        for step, measure in STEPS.items():
            numbers = found.get((channel, measure.name), [None, None, 0])
            yield format_times((label, step, *numbers))


def format_times(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row that ends with a median, a p90 and how many, as the page writes it."""
    *labels, median, p90, count = row
    said = (format_seconds(one and round_time(one)) for one in (median, p90))
    return (*labels, *said, count)

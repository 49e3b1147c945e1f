"""How long a request takes from opened to settled by a person: waiting and reading."""

from __future__ import annotations

from ..charts import Chart, Group, Plot, format_seconds
from ..measures import DECIDED, Measure, build_seconds_sql
from ..readings import Readings, Times
from ..series import build_time_panels, list_time_rows

_READ = """(SELECT coalesce(sum(vote.took_ms), 0) * interval '1 millisecond'
            FROM reviews_decision AS vote WHERE vote.request_id = request.id)"""
_WHOLE = "request.settled_at - request.opened_at"


def _build_measure(name: str, interval: str) -> Measure:
    return Measure(
        name,
        f"""
        SELECT request.tool_name, request.risk, {build_seconds_sql(interval)}, 1
        FROM {DECIDED}
        """,  # noqa: S608 constants
        crossed=False,
    )


LATENCY = _build_measure("latency", f"({_WHOLE})")
READING = _build_measure("latency_reading", _READ)
WAITING = _build_measure("latency_waiting", f"({_WHOLE} - {_READ})")
PARTS = {"Opened to settled": LATENCY, "Waiting": WAITING, "Reading": READING}


def build_chart(readings: Readings) -> Chart:
    """Waiting and reading apart, per day."""
    whole, waiting, reading = (
        Times(readings.bins(measure)) for measure in PARTS.values()
    )
    panels = build_time_panels(readings, PARTS)
    rows = list_time_rows(readings, PARTS)
    if not whole.total:
        said = "People settled no request in this period."
    else:
        said = (
            f"Half of the {whole.total:,} requests that people settled took up to "
            f"{format_seconds(whole.median)}: {format_seconds(waiting.median)} of "
            f"waiting and {format_seconds(reading.median)} of reading (medians). "
            f"One in ten took longer than {format_seconds(whole.p90)}."
        )
    columns = ("Part", "Tool", "Median", "p90", "Requests")
    return Chart(said, columns, rows, panels if whole.total else [])


PLOT = Plot(
    slug="intervention-latency",
    title="Intervention latency",
    group=Group.TIMES,
    place=20,
    definition=(
        "From when a request was opened until people approved or rejected it, on the "
        "day on which it was settled. Reading is the time that its deciders had its "
        "page open before their decisions, added up, also before one that was undone; "
        "waiting is the rest. Expired, withdrawn and superseded requests are left out."
    ),
    measures=list(PARTS.values()),
    build=build_chart,
    sliced=list(PARTS.values()),
)

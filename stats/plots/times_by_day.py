"""Times that are a median and a p90 over the days."""

from __future__ import annotations

from collections.abc import Mapping

from policies.choices import Risk

from ..charts import Chart, Group, LinePanel, Plot, format_seconds
from ..measures import (
    DECIDED,
    GIVEN,
    GIVEN_IN_DAY,
    NOT_UNDONE,
    Measure,
    build_seconds_sql,
)
from ..readings import Readings, Times
from ..series import build_time_panel, list_time_cells, list_time_rows

GOALS = {Risk.LOW: 15, Risk.MEDIUM: 30, Risk.HIGH: 60, Risk.CRITICAL: 120}
_TOOK = build_seconds_sql("decision.took_ms * interval '1 millisecond'")
_TIMED = f"{GIVEN_IN_DAY} AND decision.took_ms IS NOT NULL AND {NOT_UNDONE}"
DECISION_TIMES = Measure(
    "decision_times",
    f"""
    SELECT request.tool_name, request.risk,
           {_TOOK}, 1
    FROM {GIVEN}
    WHERE {_TIMED}
    """,  # noqa: S608 constants
)
# A stop that found nothing waiting halted nothing, and has no time.
HALTING = Measure(
    "halting_time",
    f"""
    SELECT NULL, NULL, {build_seconds_sql("(halted.at - stop.at)")}, 1
    FROM reviews_stop AS stop
    JOIN LATERAL (
        SELECT max(record.at) AS at FROM journal_logrecord AS record
        LEFT JOIN reviews_proposal AS proposal ON proposal.id = record.proposal
        WHERE record.kind IN ('request.withdrawn', 'execution.refused')
          AND convert_from(record.leaf, 'UTF8')::jsonb #>> '{{data,code}}' = 'stopped'
          AND record.at >= stop.at AND record.at < stop.at + interval '1 hour'
          AND (stop.lifted_at IS NULL OR record.at <= stop.lifted_at)
          AND CASE stop.scope
                  WHEN 'everything' THEN true
                  WHEN 'agent' THEN record.agent = stop.key
                  WHEN 'thread' THEN record.agent || '/' || record.thread = stop.key
                  WHEN 'tool' THEN proposal.tool_name = stop.key
                  ELSE false END
    ) AS halted ON halted.at IS NOT NULL
    WHERE stop.mode = 'stopped' AND stop.at >= %(start)s AND stop.at < %(end)s
    """,  # noqa: S608 constants
)
_READ = """(SELECT coalesce(sum(vote.took_ms), 0) * interval '1 millisecond'
            FROM reviews_decision AS vote WHERE vote.request_id = request.id)"""
_WHOLE = "request.settled_at - request.opened_at"


def _build_latency(name: str, interval: str) -> Measure:
    return Measure(
        name,
        f"""
        SELECT request.tool_name, request.risk, {build_seconds_sql(interval)}, 1
        FROM {DECIDED}
        """,  # noqa: S608 constants
        crossed=False,
    )


def _build_approval_time(name: str, condition: str) -> Measure:
    return Measure(
        name,
        f"""
        SELECT request.tool_name, request.risk,
               {_TOOK}, 1
        FROM {GIVEN}
        WHERE {_TIMED}
          AND decision.verdict IN ('approve', 'modify')
          AND request.risk IN ('high', 'critical') AND {condition}
        """,  # noqa: S608 constants
        crossed=False,
    )


LATENCY = {
    "Opened to settled": _build_latency("latency", f"({_WHOLE})"),
    "Waiting": _build_latency("latency_waiting", f"({_WHOLE} - {_READ})"),
    "Reading": _build_latency("latency_reading", _READ),
}
APPROVALS = {
    "With a written answer": _build_approval_time(
        "time_with_answer", "decision.check_asked ? 'written'"
    ),
    "Without a written answer": _build_approval_time(
        "time_without_answer", "NOT decision.check_asked ? 'written'"
    ),
}


def build_decision_times(readings: Readings) -> Chart:
    """One panel a risk level that has decisions, with its goal."""
    filters = readings.filters
    chosen = [risk for risk in Risk if filters.risk in {"", risk}]
    panels, rows, medians = [], [], []
    for risk in chosen:
        daily = readings.daily_of_risk(DECISION_TIMES, risk)
        whole = Times(DECISION_TIMES.add_bins(daily.values()))
        if not whole.total:
            continue
        title = f"Risk level {risk}"
        panels.append(build_time_panel(filters, daily, title, GOALS[risk]))
        medians.append(f"{format_seconds(whole.median)} at risk level {risk}")
        rows += [
            (str(risk), f"{day:%Y-%m-%d}", *list_time_cells(Times(daily[day])))
            for day in sorted(daily)
        ]
    sentence = (
        f"Half of the decisions were made within {', '.join(medians)}, counted from "
        "when the person opened the page."
        if medians
        else "Nobody decided a request on its page in this period."
    )
    columns = ("Risk level", "Day", "Median", "p90", "Decisions")
    return Chart(sentence, columns, rows, panels)


def build_halting_times(readings: Readings) -> Chart:
    """The median and the p90 per day."""
    filters, daily = readings.filters, readings.daily(HALTING)
    whole = Times(readings.bins(HALTING))
    sentence = "No stop withdrew anything in this period."
    if whole.total:
        many = "stop" if whole.total == 1 else "stops"
        sentence = f"{whole.total:,} {many} withdrew what waited: half within"
        sentence += f" {format_seconds(whole.median)}, nine of ten within"
        sentence += f" {format_seconds(whole.p90)}."
    return Chart(
        sentence,
        ("Day", "Median", "p90", "Stops"),
        [
            (f"{day:%Y-%m-%d}", *list_time_cells(Times(daily[day])))
            for day in sorted(daily)
        ],
        [build_time_panel(filters, daily)] if whole.total else [],
    )


def build_latency_chart(readings: Readings) -> Chart:
    """Waiting and reading apart, per day."""
    whole, waiting, reading = (
        Times(readings.bins(measure)) for measure in LATENCY.values()
    )
    panels = _build_panels(readings, LATENCY)
    rows = list_time_rows(readings, LATENCY)
    if not whole.total:
        sentence = "People settled no request in this period."
    else:
        sentence = (
            f"Half of the {whole.total:,} requests that people settled took up to "
            f"{format_seconds(whole.median)}: {format_seconds(waiting.median)} of "
            f"waiting and {format_seconds(reading.median)} of reading (medians). "
            f"One in ten took longer than {format_seconds(whole.p90)}."
        )
    columns = ("Part", "Tool", "Median", "p90", "Requests")
    return Chart(sentence, columns, rows, panels if whole.total else [])


def build_approval_times(readings: Readings) -> Chart:
    """Both times per day, with their difference in the sentence."""
    answered, others = (Times(readings.bins(measure)) for measure in APPROVALS.values())
    panels = _build_panels(readings, APPROVALS)
    rows = list_time_rows(readings, APPROVALS)
    if not answered.total:
        sentence = "No approval needed a written answer in this period."
    else:
        sentence = (
            f"Half of the {answered.total:,} approvals with a written answer took up to"
            f" {format_seconds(answered.median)}, and half of the {others.total:,}"
            " others at high and critical risk up to"
            f" {format_seconds(others.median)}."
        )
    columns = ("Approvals", "Tool", "Median", "p90", "Count")
    return Chart(sentence, columns, rows, panels if answered.total else [])


def _build_panels(readings: Readings, parts: Mapping[str, Measure]) -> list[LinePanel]:
    return [
        build_time_panel(readings.filters, readings.daily(measure), title)
        for title, measure in parts.items()
    ]


PLOTS = [
    Plot(
        slug="decision-time",
        title="Time to decision",
        group=Group.TIMES,
        place=10,
        definition=(
            "From when a person opened the page of a request until their decision: the "
            "median and the p90 of each day, per risk level. The goals for the median "
            "are 15 seconds for low, 30 for medium, 60 for high and 120 for critical. "
            "Decisions that did not come from a page have no such time, and approvals "
            "that were undone are left out."
        ),
        measures=[DECISION_TIMES],
        build=build_decision_times,
        by_risk=[DECISION_TIMES],
    ),
    Plot(
        slug="halting-time",
        title="Time until a stop is complete",
        group=Group.EFFECTS,
        place=30,
        definition=(
            "From a stop of an agent, a run, a tool or everything until the last "
            "request or execution that it withdrew or refused within the hour. New "
            "effects are refused at once; this is the time until nothing that waited "
            "before is left."
        ),
        measures=[HALTING],
        build=build_halting_times,
        filtered=False,
    ),
    Plot(
        slug="intervention-latency",
        title="Intervention latency",
        group=Group.TIMES,
        place=20,
        definition=(
            "From when a request was opened until people approved or rejected it, on "
            "the day on which it was settled. Reading is the time that its deciders "
            "had its page open before their decisions, added up, also before one that "
            "was undone; waiting is the rest. Expired, withdrawn and superseded "
            "requests are left out."
        ),
        measures=list(LATENCY.values()),
        build=build_latency_chart,
        sliced=list(LATENCY.values()),
    ),
    Plot(
        slug="written-answers",
        title="Cost of written answers",
        group=Group.TIMES,
        place=25,
        definition=(
            "From when a person opened the page of a request at high or critical risk "
            "until they approved or changed it: with a written answer to a question "
            "about what Counterseal found (a risk indicator), and without one. "
            "Approvals that were undone are left out."
        ),
        measures=list(APPROVALS.values()),
        build=build_approval_times,
        sliced=list(APPROVALS.values()),
    ),
]

"""What became of the requests, per tool. Other plots read the same measure."""

from __future__ import annotations

from ..charts import Bar, BarPanel, Chart, Group, Plot, format_share
from ..measures import ANSWERED_IN_DAY, Measure
from ..readings import Rate, Readings

OUTCOMES = Measure(
    "outcomes",
    f"""
    SELECT request.tool_name, request.risk,
           CASE WHEN request.status <> 'authorized' THEN request.status
                WHEN EXISTS (SELECT FROM reviews_decision AS vote
                             WHERE vote.request_id = request.id
                               AND vote.verdict = 'modify') THEN 'modified'
                WHEN EXISTS (SELECT FROM reviews_decision AS vote
                             WHERE vote.request_id = request.id
                               AND vote.verdict = 'escalate') THEN 'escalated'
                ELSE 'approved' END,
           1
    FROM reviews_approvalrequest AS request
    WHERE {ANSWERED_IN_DAY}
    """,  # noqa: S608 constants
)
LABELS = {
    "approved": "approved as proposed",
    "modified": "changed and approved",
    "escalated": "approved after an escalation",
    "rejected": "rejected",
    "expired": "expired",
}
DECIDED = ("approved", "modified", "escalated", "rejected")
UNMODIFIED = ("approved", "escalated")
CORRECTED = ("modified", "rejected")


def build_chart(readings: Readings) -> Chart:
    """One bar a tool, all of the same length."""
    tools = readings.by_tool(OUTCOMES)
    bars = [
        Bar(tool, [bins.get(name, 0) for name in LABELS])
        for tool, bins in tools.items()
    ]
    whole = readings.bins(OUTCOMES)
    total = sum(whole.values())
    said = ", ".join(
        f"{format_share(Rate(whole.get(name, 0), total).share)} {label}"
        f" ({whole.get(name, 0):,})"
        for name, label in LABELS.items()
    )
    return Chart(
        f"Of {total:,} settled requests: {said}."
        if total
        else "No request was settled in this period.",
        ("Tool", *(label.capitalize() for label in LABELS.values()), "All"),
        [(one.label, *one.parts, sum(one.parts)) for one in bars],
        [BarPanel(list(LABELS.values()), bars, whole=True)] if bars else [],
    )


PLOT = Plot(
    slug="outcome-mix",
    title="Outcomes per tool",
    group=Group.OUTCOMES,
    place=30,
    definition=(
        "What became of the requests, on the day on which they were settled. A request "
        "has one outcome: expired, rejected, changed and approved (a person changed "
        "the arguments), approved after an escalation (a person escalated it), or "
        "approved as proposed. An approval that was undone is no outcome; an edit and "
        "an escalation count also when they were undone or returned. Withdrawn and "
        "superseded requests are left out."
    ),
    measures=[OUTCOMES],
    build=build_chart,
    sliced=[OUTCOMES],
)

"""What became of the requests, per tool. Other plots read the same measure."""

from __future__ import annotations

from ..charts import (
    POLICY_LINK,
    Bar,
    BarPanel,
    Chart,
    Dot,
    DotPanel,
    Group,
    Panel,
    Plot,
    format_rate,
    format_share,
)
from ..measures import ANSWERED_IN_DAY, Measure
from ..readings import Rate, Readings
from ..series import build_count_panel, build_rate_maker, list_rate_cells, word_rate

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
LEAST, MOST = 0.5, 0.95  # the thresholds of a policy's usual alerts
make_unmodified_rate = build_rate_maker(UNMODIFIED, DECIDED)
make_expired_rate = build_rate_maker(["expired"], LABELS)


def build_mix(readings: Readings) -> Chart:
    """One bar a tool, all of the same length."""
    tools = readings.by_tool(OUTCOMES)
    bars = [
        Bar(tool, [bins.get(name, 0) for name in LABELS])
        for tool, bins in tools.items()
    ]
    whole = readings.bins(OUTCOMES)
    total = sum(whole.values())
    outcomes = ", ".join(
        f"{format_share(Rate(whole.get(name, 0), total).share)} {label}"
        f" ({whole.get(name, 0):,})"
        for name, label in LABELS.items()
    )
    return Chart(
        f"Of {total:,} settled requests: {outcomes}."
        if total
        else "No request was settled in this period.",
        ("Tool", *(label.capitalize() for label in LABELS.values()), "All"),
        [(bar.label, *bar.parts, sum(bar.parts)) for bar in bars],
        [BarPanel(list(LABELS.values()), bars, whole=True)] if bars else [],
    )


def build_unmodified_rates(readings: Readings) -> Chart:
    """A dot a tool and risk level, with its interval, over the expected range."""
    rates = {
        key: make_unmodified_rate(bins)
        for key, bins in readings.by_tool_and_risk(OUTCOMES).items()
    }
    decided = {key: rate for key, rate in rates.items() if rate.total}
    dots = [Dot(f"{tool}, {risk}", rate) for (tool, risk), rate in decided.items()]
    sentence = word_rate(
        make_unmodified_rate(readings.bins(OUTCOMES)),
        "People approved {} of the requests that they decided without a change.",
        "People decided no request in this period.",
    )
    high = [
        dot for dot in dots if dot.rate.total >= 200 and (dot.rate.share or 0) > MOST
    ]
    low = [dot for dot in dots if not dot.rate.few and (dot.rate.share or 0) < LEAST]
    for dot in high:
        sentence += f" {dot.label}: {format_rate(dot.rate)}; its rule may be too broad."
    for dot in low:
        sentence += (
            f" {dot.label}: {format_rate(dot.rate)}; look at the agent's proposals."
        )
    return Chart(
        sentence,
        ("Tool", "Risk level", "Rate", "Count", "Of", "95 % interval"),
        [
            (tool, str(risk), *list_rate_cells(rate), _format_interval(rate.interval))
            for (tool, risk), rate in decided.items()
        ],
        [DotPanel(dots, band=(LEAST, MOST))] if dots else [],
        link_label="Policy",
        link=POLICY_LINK,
    )


def _format_interval(interval: tuple[float, float] | None) -> str:
    if interval is None:
        return "none"
    low, high = interval
    return f"{low * 100:.1f} to {high * 100:.1f} %"


def build_expired_counts(readings: Readings) -> Chart:
    """Expired requests per day, and one bar a tool."""
    filters, daily = readings.filters, readings.daily(OUTCOMES)
    whole = make_expired_rate(readings.bins(OUTCOMES))
    tools = {
        tool: make_expired_rate(bins)
        for tool, bins in readings.by_tool(OUTCOMES).items()
    }
    bars = [Bar(tool, [rate.count]) for tool, rate in tools.items() if rate.count]
    sentence = word_rate(
        whole,
        "{} of the requests expired before a decision. The goal is at most 1 %.",
        "No request was settled in this period.",
    )
    panels: list[Panel] = [
        build_count_panel("expired", filters, daily, ["expired"]),
        BarPanel(["expired"], bars, title="Per tool"),
    ]
    rows = [(tool, *list_rate_cells(rate)) for tool, rate in tools.items()]
    columns = ("Tool", "Rate", "Expired", "Of")
    return Chart(sentence, columns, rows, panels if whole.count else [])


PLOTS = [
    Plot(
        slug="outcome-mix",
        title="Outcomes per tool",
        group=Group.OUTCOMES,
        place=30,
        definition=(
            "What became of the requests, on the day on which they were settled. A "
            "request has one outcome: expired, rejected, changed and approved (a "
            "person changed the arguments), approved after an escalation (a person "
            "escalated it), or approved as proposed. An approval that was undone is no "
            "outcome; an edit and an escalation count also when they were undone or "
            "returned. Withdrawn and superseded requests are left out."
        ),
        measures=[OUTCOMES],
        build=build_mix,
        sliced=[OUTCOMES],
    ),
    Plot(
        slug="unmodified-approval",
        title="Approved without a change",
        group=Group.OUTCOMES,
        place=40,
        definition=(
            "Requests that people approved without changing an argument, divided by "
            "all requests that they decided, with the 95 % interval (Wilson). An "
            "approval that was undone is not counted. Above 95 % over 200 requests, "
            "the rule may be too broad, or people approve without looking. Below 50 %, "
            "the agent's proposals are the problem. A sudden rise after a change of "
            "the agent deserves a look."
        ),
        measures=[OUTCOMES],
        build=build_unmodified_rates,
        sliced=[OUTCOMES],
    ),
    Plot(
        slug="expired-requests",
        title="Expired requests",
        group=Group.TIMES,
        place=40,
        definition=(
            "Requests that expired because nobody decided them in time, per day and "
            "per tool, and their share of all requests that people decided or that "
            "expired. Nothing is executed for an expired request."
        ),
        measures=[OUTCOMES],
        build=build_expired_counts,
        sliced=[OUTCOMES],
    ),
]

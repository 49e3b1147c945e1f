"""Decisions that had no effect because something changed meanwhile."""

from __future__ import annotations

from collections import Counter

from ..charts import Bar, BarPanel, Chart, Group, Panel, Plot
from ..measures import Measure
from ..readings import Readings
from ..series import build_count_panel

LABELS = {
    "stale": "the request changed",
    "held": "someone else had claimed it",
    "lease_lapsed": "the claim had ended",
    "decided": "it was already decided",
    "batch_changed": "the batch changed",
    "expired": "it had expired",
}
CONFLICTS = Measure(
    "conflicts",
    """
    SELECT request.tool_name, request.risk,
           convert_from(record.leaf, 'UTF8')::jsonb #>> '{data,code}', 1
    FROM journal_logrecord AS record
    LEFT JOIN reviews_approvalrequest AS request ON request.id = record.request
    WHERE record.kind IN ('decision.refused', 'batch.refused')
      AND record.at >= %(start)s AND record.at < %(end)s
      AND request.canary IS NOT TRUE
    """,
)


def build_chart(readings: Readings) -> Chart:
    """One bar a cause, and the sum per day."""
    filters, daily = readings.filters, readings.daily(CONFLICTS)
    bins = Counter(
        {
            name: count
            for name, count in readings.bins(CONFLICTS).items()
            if name in LABELS
        }
    )
    total = bins.total()
    sentence = (
        "Every decision that people submitted in this period found its request as it"
    )
    sentence += " was shown."
    if total:
        code, count = bins.most_common(1)[0]
        sentence = (
            f"{total:,} {'decision' if total == 1 else 'decisions'} had no effect,"
        )
        sentence += f" most often because {LABELS[code]} ({count:,})."
    rows = [(LABELS[name].capitalize(), count) for name, count in bins.most_common()]
    panels: list[Panel] = [
        BarPanel(
            ["conflicts"],
            [Bar(LABELS[name], [count]) for name, count in bins.most_common()],
        ),
        build_count_panel("conflicts", filters, daily, LABELS),
    ]
    return Chart(sentence, ("Cause", "Decisions"), rows, panels if total else [])


PLOTS = [
    Plot(
        slug="conflicts",
        title="Conflicts",
        group=Group.ATTENTION,
        place=50,
        definition=(
            "Decisions that a person submitted and that had no effect, because the "
            "request or its batch changed, was claimed or decided by another person, "
            "or expired meanwhile. Many of them mean that agents change requests while "
            "people read, or that people get in each other's way. Nothing that a "
            "person wrote is lost."
        ),
        measures=[CONFLICTS],
        build=build_chart,
    ),
]

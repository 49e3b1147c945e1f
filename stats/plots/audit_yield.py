"""How many second reviews find a wrong decision."""

from __future__ import annotations

from reviews.choices import SampleCause

from ..charts import Chart, Dot, DotPanel, Group, Plot
from ..measures import SEPARATOR, Measure
from ..people import DECIDERS
from ..readings import Readings
from ..series import build_rates, list_rate_cells, say_rate, sum_rates

FOUND = Measure(
    "audit_yield",
    """
    SELECT review.tool_name, review.risk, kind.name || chr(31) || review.cause, 1
    FROM reviews_secondreview AS review
    JOIN reviews_decision AS decision ON decision.id = review.decision_id
    JOIN reviews_approvalrequest AS request ON request.id = decision.request_id
    CROSS JOIN LATERAL (VALUES
        ('reviewed'),
        (CASE WHEN NOT review.agrees THEN 'split' END),
        (CASE WHEN review.upheld = 'second' THEN 'found' END)
    ) AS kind (name)
    WHERE request.settled_at >= %(start)s AND request.settled_at < %(end)s
      AND review.answered_at IS NOT NULL
    """,
)
LABELS: dict[str, str] = {
    SampleCause.SAMPLE: "drawn at random",
    SampleCause.FAST: "decided before the minimum reading time",
    SampleCause.TARGET: "first decision on its payee or record",
}


def build_chart(readings: Readings) -> Chart:
    """A dot a cause."""
    bins = readings.bins(FOUND)
    rates = build_rates(bins, "found", "reviewed", LABELS)
    split = sum(bins.get(f"split{SEPARATOR}{cause}", 0) for cause in LABELS)
    said = say_rate(
        sum_rates(rates.values()),
        "{} of the second reviews found a wrong decision.",
        "Nothing was reviewed a second time in this period.",
    )
    if split:
        said += f" {split:,} disagreed with the first verdict."
    return Chart(
        said,
        ("Chosen", "Rate", "Wrong", "Reviewed", "Disagreed"),
        [
            (
                LABELS[cause],
                *list_rate_cells(rate),
                bins.get(f"split{SEPARATOR}{cause}", 0),
            )
            for cause, rate in rates.items()
        ],
        [DotPanel([Dot(LABELS[cause], rate) for cause, rate in rates.items()])]
        if rates
        else [],
        link_label="Disagreements",
        link="reviews:second_reviews",
    )


PLOT = Plot(
    slug="audit-yield",
    title="Audit yield",
    group=Group.ATTENTION,
    place=110,
    definition=(
        "Second reviews whose verdict a supervisor upheld against the first one, "
        "divided by all second reviews that were answered, by why the decision was "
        "chosen and on the day on which the request was settled. A disagreement "
        "that nobody has settled yet does not count as upheld."
    ),
    measures=[FOUND, DECIDERS],
    build=build_chart,
    people=True,
)

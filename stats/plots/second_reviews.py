"""How often a second reviewer who does not know the verdict agrees with the first, and
how many second reviews find a wrong decision."""

from __future__ import annotations

from collections.abc import Mapping

from reviews.choices import SampleCause

from ..charts import Chart, Dot, DotPanel, Group, Plot
from ..measures import SEPARATOR, Measure
from ..people import DECIDERS
from ..readings import Rate, Readings
from ..series import build_rates, list_rate_cells, sum_rates, word_rate

GOAL = 0.9
VERDICTS = ("approve", "reject")
# The first and the second verdict. A later answer is a record about the proposal, which
# has the day computed again.
PAIRS = Measure(
    "second_reviews",
    """
    SELECT review.tool_name, review.risk,
           decision.verdict || chr(31) || review.verdict, 1
    FROM reviews_secondreview AS review
    JOIN reviews_decision AS decision ON decision.id = review.decision_id
    JOIN reviews_approvalrequest AS request ON request.id = decision.request_id
    WHERE request.settled_at >= %(start)s AND request.settled_at < %(end)s
      AND review.answered_at IS NOT NULL
    """,
)
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


def make_rate(bins: Mapping[str, int]) -> Rate:
    """How many of the second verdicts equal the first."""
    same = sum(bins.get(f"{verdict}{SEPARATOR}{verdict}", 0) for verdict in VERDICTS)
    return Rate(same, sum(bins.values()))


def compute_kappa(bins: Mapping[str, int]) -> float | None:
    """The agreement beyond chance (Cohen 1960); None where chance explains all."""
    total = sum(bins.values())
    if not total:
        return None
    by_chance = 0.0
    for verdict in VERDICTS:
        first = sum(bins.get(f"{verdict}{SEPARATOR}{other}", 0) for other in VERDICTS)
        second = sum(bins.get(f"{other}{SEPARATOR}{verdict}", 0) for other in VERDICTS)
        by_chance += first * second / total**2
    if by_chance == 1:
        return None
    return (make_rate(bins).count / total - by_chance) / (1 - by_chance)


def build_agreement(readings: Readings) -> Chart:
    """A dot a tool."""
    tools = readings.by_tool(PAIRS)
    sentence = word_rate(
        make_rate(readings.bins(PAIRS)),
        "Second reviewers agreed with {} of the verdicts. The goal is at least 90 %.",
        "Nothing was reviewed a second time in this period.",
    )
    dots = [Dot(tool, make_rate(bins)) for tool, bins in tools.items()]
    return Chart(
        sentence,
        ("Tool", "Rate", "Agreed", "Of", "Kappa"),
        [
            (tool, *list_rate_cells(make_rate(bins)), _format_kappa(bins))
            for tool, bins in tools.items()
        ],
        [DotPanel(dots, goal=GOAL)] if dots else [],
    )


def _format_kappa(bins: Mapping[str, int]) -> str:
    kappa = compute_kappa(bins)
    return "none" if kappa is None else f"{kappa:.2f}"


def build_audit_yield(readings: Readings) -> Chart:
    """A dot a cause."""
    bins = readings.bins(FOUND)
    rates = build_rates(bins, "found", "reviewed", LABELS)
    split = sum(bins.get(f"split{SEPARATOR}{cause}", 0) for cause in LABELS)
    sentence = word_rate(
        sum_rates(rates.values()),
        "{} of the second reviews found a wrong decision.",
        "Nothing was reviewed a second time in this period.",
    )
    if split:
        sentence += f" {split:,} disagreed with the first verdict."
    return Chart(
        sentence,
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


PLOTS = [
    Plot(
        slug="second-reviews",
        title="Agreement of second reviews",
        group=Group.ATTENTION,
        place=100,
        definition=(
            "Second reviews, which are only of decisions that were not undone, with "
            "the same verdict as the first, divided by all that were answered, per "
            "tool and on the day on which the request was settled, with the 95 % "
            "interval. Kappa is the agreement beyond chance (Cohen): 1 is full "
            "agreement, and 0 is what chance alone would give. The second reviewer "
            "does not know the first verdict."
        ),
        measures=[PAIRS, DECIDERS],
        contributors=DECIDERS,
        build=build_agreement,
        sliced=[PAIRS],
    ),
    Plot(
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
        contributors=DECIDERS,
        build=build_audit_yield,
    ),
]

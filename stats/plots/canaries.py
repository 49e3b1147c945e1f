"""How often reviewers catch the planted defect of a canary, and whether people who
decide faster catch fewer."""

from __future__ import annotations

from collections import defaultdict

from assurance.defects import BY_KIND
from policies.choices import Risk
from reviews.choices import DefectKind

from ..charts import Chart, Dot, DotPanel, Group, Plot, format_rate
from ..measures import Combination, Measure
from ..readings import Rate, Readings
from ..series import build_dot_chart, build_rates, list_rate_cells, sum_rates, word_rate

GOAL = 0.85
CANARIES = Measure(
    "canaries",
    """
    SELECT canary.tool_name, canary.risk, kind.name || chr(31) || canary.defect, 1
    FROM reviews_canary AS canary
    CROSS JOIN LATERAL (VALUES
        ('decided'), (CASE WHEN canary.caught THEN 'caught' END)
    ) AS kind (name)
    WHERE canary.ended_at >= %(start)s AND canary.ended_at < %(end)s
      AND canary.caught IS NOT NULL
    """,
)
# Whether a person decided a canary on the day, and no more about them.
CANARY_DECIDERS = Measure(
    "canary_deciders",
    """
    SELECT canary.tool_name, canary.risk, canary.reviewer_id::text, 1
    FROM reviews_canary AS canary
    WHERE canary.ended_at >= %(start)s AND canary.ended_at < %(end)s
      AND canary.caught IS NOT NULL
    """,
    Combination.LOWEST,
)
# The upper limits of the bands, in seconds, with their labels.
BANDS = {
    5: "under 5 s",
    10: "5 to 10 s",
    30: "10 to 30 s",
    60: "30 to 60 s",
    120: "1 to 2 min",
}
LONGER = "2 min and longer"
_BAND = "".join(
    f" WHEN canary.took_ms < {limit * 1000} THEN '{label}'"
    for limit, label in BANDS.items()
)
SPEEDS = Measure(
    "canary_speeds",
    f"""
    SELECT canary.tool_name, canary.risk,
           kind.name || chr(31) || CASE {_BAND} ELSE '{LONGER}' END, 1
    FROM reviews_canary AS canary
    CROSS JOIN LATERAL (VALUES
        ('decided'), (CASE WHEN canary.caught THEN 'caught' END)
    ) AS kind (name)
    WHERE canary.ended_at >= %(start)s AND canary.ended_at < %(end)s
      AND canary.caught IS NOT NULL AND canary.took_ms IS NOT NULL
    """,  # noqa: S608 constants
)


def build_catch_rates(readings: Readings) -> Chart:
    """A dot a kind of defect, and a dot a risk level."""
    kinds = build_rates(
        readings.bins(CANARIES), "caught", "decided", sorted(DefectKind)
    )
    rates = {BY_KIND[DefectKind(kind)].title: rate for kind, rate in kinds.items()}
    risks = _collect_risks(readings)
    sentence = word_rate(
        sum_rates(rates.values()),
        "Reviewers caught {} of the planted defects. The goal is at least 85 %.",
        "Nobody decided a canary in this period.",
    )
    parts = [("Defect", "Defect", rates), ("Risk", "Risk level", risks)]
    return Chart(
        sentence,
        ("Per", "Value", "Rate", "Caught", "Of"),
        [
            (part, label, *list_rate_cells(rate))
            for part, _, labelled in parts
            for label, rate in labelled.items()
        ],
        [
            DotPanel([Dot(*pair) for pair in labelled.items()], title, goal=GOAL)
            for _, title, labelled in parts
        ]
        if rates
        else [],
        link_label="Assurance",
        link="reviews:assurance",
    )


def _collect_risks(readings: Readings) -> dict[str, Rate]:
    """The rate of each risk level that has canaries, of all kinds of defects."""
    rates: dict[Risk, list[Rate]] = defaultdict(list)
    for (_, risk), bins in readings.by_tool_and_risk(CANARIES).items():
        rates[risk] += build_rates(bins, "caught", "decided", DefectKind).values()
    return {str(risk): sum_rates(rates[risk]) for risk in Risk if risk in rates}


def build_speed_rates(readings: Readings) -> Chart:
    """A dot a band of decision times."""
    bands = [*BANDS.values(), LONGER]
    rates = build_rates(readings.bins(SPEEDS), "caught", "decided", bands)
    sentence = "Nobody decided a canary in this period."
    if rates:
        first, last = next(iter(rates)), next(reversed(rates))
        sentence = f"People caught {format_rate(rates[first])} of the canaries whose"
        sentence += f" decision took {first}"
        if len(rates) > 1:
            sentence += f", and {format_rate(rates[last])} of those that took {last}"
        sentence += "."
    columns = ("Time to decide", "Rate", "Caught", "Of")
    return build_dot_chart(sentence, columns, rates, GOAL)


PLOTS = [
    Plot(
        slug="canary-catch",
        title="Planted defects caught",
        group=Group.ATTENTION,
        place=80,
        definition=(
            "Canaries that their reviewer rejected, escalated or corrected, divided by "
            "all canaries that were decided, per kind of defect and per risk level, "
            "with the 95 % interval. A canary is a clone of an approved request with "
            "one planted defect, which can never be executed. One that ended without a "
            "decision does not count."
        ),
        measures=[CANARIES, CANARY_DECIDERS],
        contributors=CANARY_DECIDERS,
        contribution="decided a canary",
        build=build_catch_rates,
        sliced=[CANARIES],
    ),
    Plot(
        slug="speed-and-catch",
        title="Speed and planted defects caught",
        group=Group.ATTENTION,
        place=90,
        definition=(
            "Canaries that were caught, divided by all that were decided, by the time "
            "from opening the page to the decision. If the fast bands are much lower, "
            "speed costs attention. It is never shown per person."
        ),
        measures=[SPEEDS, CANARY_DECIDERS],
        contributors=CANARY_DECIDERS,
        contribution="decided a canary",
        build=build_speed_rates,
    ),
]

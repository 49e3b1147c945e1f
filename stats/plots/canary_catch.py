"""How often reviewers catch the planted defect of a canary. Other plots read the same
measures."""

from __future__ import annotations

from collections import Counter

from assurance.defects import BY_KIND
from policies.choices import Risk
from reviews.choices import DefectKind

from ..charts import Chart, Dot, DotPanel, Group, Plot
from ..measures import SEPARATOR, Combination, Measure
from ..readings import Bins, Rate, Readings
from ..series import build_rates, list_rate_cells, say_rate, sum_rates

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


def build_chart(readings: Readings) -> Chart:
    """A dot a kind of defect, and a dot a risk level."""
    bins = readings.bins(CANARIES)
    kinds = sorted({name.partition(SEPARATOR)[2] for name in bins})
    rates = {
        BY_KIND[DefectKind(kind)].title: rate
        for kind, rate in build_rates(bins, "caught", "decided", kinds).items()
    }
    risks = _collect_risks(readings)
    said = say_rate(
        sum_rates(rates.values()),
        "Reviewers caught {} of the planted defects. The goal is at least 85 %.",
        "Nobody decided a canary in this period.",
    )
    return Chart(
        said,
        ("Per", "Value", "Rate", "Caught", "Of"),
        [
            *(("Defect", name, *list_rate_cells(rate)) for name, rate in rates.items()),
            *(("Risk", str(risk), *list_rate_cells(one)) for risk, one in risks),
        ],
        [
            _build_panel([Dot(name, rate) for name, rate in rates.items()], "Defect"),
            _build_panel([Dot(str(risk), rate) for risk, rate in risks], "Risk level"),
        ]
        if rates
        else [],
        link_label="Assurance",
        link="reviews:assurance",
    )


def _build_panel(dots: list[Dot], title: str) -> DotPanel:
    return DotPanel(dots, title, goal=GOAL, goal_label="goal 85 %")


def _collect_risks(readings: Readings) -> list[tuple[Risk, Rate]]:
    """The rate of each risk level that has canaries, of all kinds of defects."""
    found: dict[Risk, Counter[str]] = {}
    for (_, risk), bins in readings.by_tool_and_risk(CANARIES).items():
        found.setdefault(risk, Counter()).update(_add_kinds(bins))
    order = list(Risk)
    return [
        (risk, Rate(found[risk]["caught"], found[risk]["decided"]))
        for risk in sorted(found, key=order.index)
    ]


def _add_kinds(bins: Bins) -> Counter[str]:
    added: Counter[str] = Counter()
    for name, value in bins.items():
        added[name.partition(SEPARATOR)[0]] += value
    return added


PLOT = Plot(
    slug="canary-catch",
    title="Planted defects caught",
    group=Group.ATTENTION,
    place=80,
    definition=(
        "Canaries that their reviewer rejected, escalated or corrected, divided by all "
        "canaries that were decided, per kind of defect and per risk level, with the "
        "95 % interval. A canary is a clone of an approved request with one planted "
        "defect, which can never be executed. One that ended without a decision does "
        "not count."
    ),
    measures=[CANARIES, CANARY_DECIDERS],
    build=build_chart,
    sliced=[CANARIES],
    people=True,
    contributors=CANARY_DECIDERS,
)

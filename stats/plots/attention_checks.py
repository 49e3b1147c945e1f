"""How many attention checks people answer right at the first try, per kind."""

from __future__ import annotations

from ..charts import Chart, Dot, DotPanel, Group, Plot
from ..measures import GIVEN, GIVEN_IN_DAY, SEPARATOR, Measure
from ..people import DECIDERS
from ..readings import Rate, Readings
from ..series import list_rate_cells, say_rate, sum_rates

CHECKS = Measure(
    "attention_checks",
    f"""
    SELECT request.tool_name, request.risk,
           split_part(decision.check_asked ->> 'question', ':', 1)
               || chr(31) || kind.name, 1
    FROM {GIVEN}
    CROSS JOIN LATERAL (VALUES
        ('asked'),
        (CASE WHEN decision.check_asked #> '{{answers,0}}'
                   = decision.check_asked -> 'right' THEN 'right' END)
    ) AS kind (name)
    WHERE {GIVEN_IN_DAY}
      AND decision.check_asked #> '{{answers,0}}' IS NOT NULL
    """,  # noqa: S608 constants
)

# The kinds of `reviews.attention_checks.questions`, in words.
LABELS = {
    "after": "a value after the action",
    "given": "an argument",
    "stated": "an argument on top",
    "changes": "what changes",
    "recipients": "how many recipients",
    "outside": "recipients outside the company",
    "reversal": "whether it can be reversed",
    "program": "which program runs",
    "steps": "how many steps",
}


def build_chart(readings: Readings) -> Chart:
    """One dot a kind of question."""
    bins = readings.bins(CHECKS)
    kinds = sorted({name.partition(SEPARATOR)[0] for name in bins})
    rates = {
        kind: Rate(
            bins.get(f"{kind}{SEPARATOR}right", 0),
            bins.get(f"{kind}{SEPARATOR}asked", 0),
        )
        for kind in kinds
    }
    said = say_rate(
        sum_rates(rates.values()),
        "People answered {} of the attention checks right at the first try.",
        "No decision came with an attention check in this period.",
    )
    return Chart(
        said,
        ("Kind of question", "Rate", "Right at first", "Asked"),
        [
            (LABELS.get(kind, kind), *list_rate_cells(rate))
            for kind, rate in rates.items()
        ],
        [DotPanel([Dot(LABELS.get(kind, kind), rate) for kind, rate in rates.items()])]
        if rates
        else [],
    )


PLOT = Plot(
    slug="attention-checks",
    title="Attention checks",
    group=Group.ATTENTION,
    place=30,
    definition=(
        "Attention checks whose first answer was right, divided by all attention "
        "checks that were answered, per kind of question and on the day of the "
        "decision, with the 95 % interval. A check counts also when the approval was "
        "undone."
    ),
    measures=[CHECKS, DECIDERS],
    build=build_chart,
    people=True,
)

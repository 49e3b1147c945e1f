"""How many attention checks people answer right at the first try, per kind."""

from __future__ import annotations

from ..charts import Chart, Group, Plot
from ..measures import GIVEN, GIVEN_IN_DAY, Measure
from ..people import DECIDERS
from ..readings import Rate, Readings
from ..series import build_dot_chart, split_bins, sum_rates, word_rate

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
    rates = {
        LABELS.get(kind, kind): Rate(counts.get("right", 0), counts.get("asked", 0))
        for kind, counts in sorted(split_bins(readings.bins(CHECKS)).items())
    }
    sentence = word_rate(
        sum_rates(rates.values()),
        "People answered {} of the attention checks right at the first try.",
        "No decision came with an attention check in this period.",
    )
    columns = ("Kind of question", "Rate", "Right at first", "Asked")
    return build_dot_chart(sentence, columns, rates)


PLOTS = [
    Plot(
        slug="attention-checks",
        title="Attention checks",
        group=Group.ATTENTION,
        place=30,
        definition=(
            "Attention checks whose first answer was right, divided by all attention "
            "checks that were answered, per kind of question and on the day of the "
            "decision, with the 95 % interval. A check counts also when the approval "
            "was undone."
        ),
        measures=[CHECKS, DECIDERS],
        contributors=DECIDERS,
        build=build_chart,
    ),
]

"""Who may see how people work: figures that few people contributed to say how one
person works, and only that person and a supervisor may know that."""

from __future__ import annotations

from .charts import Chart
from .measures import GIVEN, GIVEN_IN_DAY, Combination, Measure
from .readings import Readings

FEWEST = 3  # people behind a figure that administrators and auditors see
# Whether a person decided on the day, and no more about them.
DECIDERS = Measure(
    "deciders",
    f"""
    SELECT request.tool_name, request.risk, decision.reviewer_id::text, 1
    FROM {GIVEN} WHERE {GIVEN_IN_DAY}
    """,  # noqa: S608 constants
    Combination.LOWEST,
)


def build_withheld_chart(contribution: str) -> Chart:
    """What stands for a chart of too few people, who `contribution`: "decided"."""
    sentence = (
        f"Fewer than three people {contribution} here in this period. Only supervisors"
        " see figures of so few people."
    )
    return Chart(sentence, (), [])


def has_enough_people(readings: Readings, contributors: Measure) -> bool:
    """Whether at least three people contributed, or nobody at all."""
    count = len(readings.bins(contributors))
    return count == 0 or count >= FEWEST

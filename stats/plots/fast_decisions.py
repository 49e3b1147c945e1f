"""How many decisions people confirm before the minimum reading time."""

from __future__ import annotations

from ..charts import Chart, Group, Plot
from ..measures import GIVEN, GIVEN_IN_DAY, NOT_UNDONE, Measure
from ..people import DECIDERS
from ..readings import Readings
from ..series import build_daily_rate_chart, build_rate_maker, say_rate

GOAL = 0.03
FAST = Measure(
    "fast_decisions",
    f"""
    SELECT request.tool_name, request.risk, kind.name, 1
    FROM {GIVEN}
    CROSS JOIN LATERAL (VALUES
        ('timed'), (CASE WHEN 'fast' = ANY (decision.flags) THEN 'fast' END)
    ) AS kind (name)
    WHERE {GIVEN_IN_DAY} AND decision.took_ms IS NOT NULL AND {NOT_UNDONE}
    """,  # noqa: S608 constants
)
make_rate = build_rate_maker(["fast"], ["timed"])


def build_chart(readings: Readings) -> Chart:
    """The share per day and per tool."""
    return build_daily_rate_chart(
        readings,
        FAST,
        make_rate,
        lambda rate: say_rate(
            rate,
            "{} of the decisions were confirmed before the minimum reading time. "
            "The goal is at most 3 %.",
            "Nobody decided a request on its page in this period.",
        ),
        label="fast",
        goal=GOAL,
        goal_label="goal 3 %",
    )


PLOT = Plot(
    slug="fast-decisions",
    title="Fast decisions",
    group=Group.ATTENTION,
    place=10,
    definition=(
        "Decisions that a person confirmed before the minimum reading time of the risk "
        "level, although the page asked to wait, divided by all decisions on a page. "
        "Approvals that were undone are left out. A rising share is a sign of fatigue."
    ),
    measures=[FAST, DECIDERS],
    build=build_chart,
    sliced=[FAST],
    people=True,
)

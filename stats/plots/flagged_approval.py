"""How often people approve what the policy or the gate flagged, without a change."""

from __future__ import annotations

from ..charts import Chart, Group, Plot
from ..measures import DECIDED, Measure
from ..readings import Readings
from ..series import build_daily_rate_chart, build_rate_maker, say_rate

GOAL = 0.1
FLAGGED = Measure(
    "flagged_approval",
    f"""
    SELECT request.tool_name, request.risk, kind.name, 1
    FROM {DECIDED}
    JOIN reviews_requestversion AS version ON version.request_id = request.id
        AND version.number = request.version
    JOIN reviews_revision AS revision ON revision.id = version.revision_id
    CROSS JOIN LATERAL (VALUES
        ('flagged'),
        (CASE WHEN request.status = 'authorized' AND NOT request.modified
              THEN 'unmodified' END)
    ) AS kind (name)
    WHERE jsonb_array_length(coalesce(revision.evaluation -> 'flags', '[]')) > 0
       OR revision.facts ? 'indicators'
    """,  # noqa: S608 constants
)
make_rate = build_rate_maker(["unmodified"], ["flagged"])


def build_chart(readings: Readings) -> Chart:
    """The share per day and per tool."""
    return build_daily_rate_chart(
        readings,
        FLAGGED,
        make_rate,
        lambda rate: say_rate(
            rate,
            "People approved {} of the flagged requests without a change. "
            "The goal is at most 10 %.",
            "People decided no flagged request in this period.",
        ),
        label="approved unchanged",
        goal=GOAL,
        goal_label="goal 10 %",
    )


PLOT = Plot(
    slug="flagged-approval",
    title="Flagged, but approved without a change",
    group=Group.EFFECTS,
    place=10,
    definition=(
        "Requests with at least one flag that people approved without changing an "
        "argument, divided by all flagged requests that they decided; an approval that "
        "was undone decides nothing. A rule of the policy sets a flag; Counterseal "
        "does when the agent itself is uncertain, and for a risk indicator: a "
        "contradiction, an imitated domain, a first payment or an unusual amount."
    ),
    measures=[FLAGGED],
    build=build_chart,
    sliced=[FLAGGED],
)

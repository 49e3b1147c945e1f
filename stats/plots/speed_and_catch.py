"""Whether people who decide faster catch fewer planted defects."""

from __future__ import annotations

from ..charts import Chart, Dot, DotPanel, Group, Plot, format_rate
from ..measures import Measure
from ..readings import Readings
from ..series import build_rates, list_rate_cells
from .canary_catch import CANARY_DECIDERS, GOAL

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


def build_chart(readings: Readings) -> Chart:
    """A dot a band of decision times."""
    bins = readings.bins(SPEEDS)
    known = build_rates(bins, "caught", "decided", [*BANDS.values(), LONGER])
    said = "Nobody decided a canary in this period."
    if known:
        first, last = next(iter(known.items())), list(known.items())[-1]
        said = f"People caught {format_rate(first[1])} of the canaries whose decision"
        said += f" took {first[0]}"
        if len(known) > 1:
            said += f", and {format_rate(last[1])} of those that took {last[0]}"
        said += "."
    return Chart(
        said,
        ("Time to decide", "Rate", "Caught", "Of"),
        [(label, *list_rate_cells(rate)) for label, rate in known.items()],
        [
            DotPanel(
                [Dot(label, rate) for label, rate in known.items()],
                goal=GOAL,
                goal_label="goal 85 %",
            )
        ]
        if known
        else [],
    )


PLOT = Plot(
    slug="speed-and-catch",
    title="Speed and planted defects caught",
    group=Group.ATTENTION,
    place=90,
    definition=(
        "Canaries that were caught, divided by all that were decided, by the time from "
        "opening the page to the decision. If the fast bands are much lower, speed "
        "costs attention. It is never shown per person."
    ),
    measures=[SPEEDS, CANARY_DECIDERS],
    build=build_chart,
    people=True,
    contributors=CANARY_DECIDERS,
)

"""Whether people approve more, the longer they work without a break."""

from __future__ import annotations

from ..charts import Chart, Group, Line, LinePanel, Plot, Point, Unit, format_rate
from ..measures import NOT_UNDONE, Measure
from ..people import DECIDERS
from ..readings import Rate, Readings
from ..series import list_rate_cells, split_bins, sum_rates

MOST = 60  # the last place counts all later decisions of a session
STEP = 5
# A break of half an hour ends a session. One that began more than twelve hours before
# the day is cut there.
DRIFT = Measure(
    "decision_drift",
    f"""
    WITH given AS (
        SELECT decision.*, decision.at - lag(decision.at) OVER person
                   < interval '30 minutes' AS goes_on
        FROM reviews_decision AS decision
        WHERE decision.at >= %(start)s - interval '12 hours' AND decision.at < %(end)s
          AND decision.verdict <> 'escalate' AND {NOT_UNDONE}
        WINDOW person AS (PARTITION BY decision.reviewer_id
                          ORDER BY decision.at, decision.id)
    ), session AS (
        SELECT given.*, count(*) FILTER (WHERE goes_on IS NOT TRUE) OVER (
                   PARTITION BY reviewer_id ORDER BY at, id) AS number
        FROM given
    ), placed AS (
        SELECT session.*, row_number() OVER (PARTITION BY reviewer_id, number
                                             ORDER BY at, id) AS place
        FROM session
    )
    SELECT request.tool_name, request.risk,
           least(placed.place, {MOST}) || chr(31) || kind.name, 1
    FROM placed
    JOIN reviews_approvalrequest AS request ON request.id = placed.request_id
    CROSS JOIN LATERAL (VALUES
        ('all'), (CASE WHEN placed.verdict = 'approve' THEN 'approved' END)
    ) AS kind (name)
    WHERE placed.at >= %(start)s
    """,  # noqa: S608 constants
)


def build_chart(readings: Readings) -> Chart:
    """The share of plain approvals for each five places of a session."""
    places = split_bins(readings.bins(DRIFT))
    rates = {
        f"{first} to {first + STEP - 1}": sum_rates(
            Rate(places[str(n)].get("approved", 0), places[str(n)].get("all", 0))
            for n in range(first, first + STEP)
        )
        for first in range(1, MOST, STEP)
    }
    made = {place: rate for place, rate in rates.items() if rate.total}
    sentence = "Nobody decided a request in this period."
    if made:
        first, last = next(iter(made)), next(reversed(made))
        sentence = f"People approved {format_rate(made[first])} of decisions {first} of"
        sentence += " a session as proposed"
        if last == first:
            sentence += ". There are too few others to compare."
        else:
            sentence += f", and {format_rate(made[last])} of decisions {last}."
    line = Line("approved", [Point(r.share, r.total) for r in rates.values()])
    return Chart(
        sentence,
        ("Decision of the session", "Rate", "Approved", "Of"),
        [(place, *list_rate_cells(rate)) for place, rate in made.items()],
        [LinePanel(list(rates), [line], Unit.SHARE)] if made else [],
    )


PLOTS = [
    Plot(
        slug="decision-drift",
        title="Drift within a session",
        group=Group.ATTENTION,
        place=20,
        definition=(
            "The share of approvals without a change among decisions that are not "
            "escalations and were not undone, by their place in the person's session: "
            "decisions with less than 30 minutes between two of them. A share that "
            "rises with the place says that people need breaks. It is never shown per "
            "person."
        ),
        measures=[DRIFT, DECIDERS],
        contributors=DECIDERS,
        build=build_chart,
    ),
]

"""How many rejected proposals did not keep their run from completing."""

from __future__ import annotations

from ..charts import Chart, Group, Plot
from ..measures import Measure
from ..readings import Rate, Readings
from ..series import build_daily_rate_chart, build_rate_maker, say_rate

REJECTED = Measure(
    "rejected_runs",
    """
    SELECT request.tool_name, request.risk, kind.name, 1
    FROM reviews_approvalrequest AS request
    JOIN reviews_proposal AS proposal ON proposal.id = request.proposal_id
    LEFT JOIN LATERAL (
        SELECT convert_from(record.leaf, 'UTF8')::jsonb #>> '{data,result}' AS result
        FROM journal_logrecord AS record
        WHERE record.agent = proposal.agent AND record.thread = proposal.thread
          AND record.kind = 'thread.finished'
        ORDER BY record.id DESC LIMIT 1
    ) AS run ON true
    CROSS JOIN LATERAL (VALUES
        ('rejected'),
        (CASE WHEN run.result = 'completed' THEN 'completed' END),
        (CASE WHEN run.result IS NULL THEN 'running' END)
    ) AS kind (name)
    WHERE request.settled_at >= %(start)s AND request.settled_at < %(end)s
      AND request.status = 'rejected'
    """,
)
make_rate = build_rate_maker(["completed"], ["rejected"])


def build_chart(readings: Readings) -> Chart:
    """The share per day and per tool."""
    running = readings.bins(REJECTED).get("running", 0)

    def say(rate: Rate) -> str:
        said = say_rate(
            rate,
            "After {} of the rejections, the run still completed.",
            "No request was rejected in this period.",
        )
        if running:
            said += f" For {running:,} of the rejections, the run is not finished."
        return said

    return build_daily_rate_chart(
        readings, REJECTED, make_rate, say, label="run completed"
    )


PLOT = Plot(
    slug="rejection-recovery",
    title="Recovery after a rejection",
    group=Group.OUTCOMES,
    place=60,
    definition=(
        "Rejected requests whose run later completed, divided by all rejected "
        "requests, on the day of the rejection. A run completed when its agent "
        "reports so. Runs that are not finished count as not completed until they "
        "are."
    ),
    measures=[REJECTED],
    build=build_chart,
    sliced=[REJECTED],
)

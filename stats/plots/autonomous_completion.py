"""How many runs finish without waiting for a person."""

from __future__ import annotations

from ..charts import Chart, Group, Plot
from ..measures import Combination, Measure
from ..readings import Readings
from ..series import build_daily_rate_chart, build_rate_maker, say_rate

# The log says which runs finished; no package below `agents` knows its rows. A run that
# proposed nothing has no tool and counts only where all tools are meant.
RUNS = Measure(
    "finished_runs",
    """
    SELECT proposal.tool_name, revision.risk, kind.name, run.id
    FROM journal_logrecord AS run
    CROSS JOIN LATERAL (
        SELECT EXISTS (
            SELECT FROM reviews_proposal AS own
            JOIN reviews_approvalrequest AS request ON request.proposal_id = own.id
            WHERE own.agent = run.agent AND own.thread = run.thread
              AND NOT own.canary) AS waited
    ) AS found
    LEFT JOIN reviews_proposal AS proposal
        ON proposal.agent = run.agent AND proposal.thread = run.thread
        AND NOT proposal.canary
    LEFT JOIN reviews_revision AS revision
        ON revision.proposal_id = proposal.id AND revision.number = proposal.revision
    CROSS JOIN LATERAL (VALUES
        ('finished'), (CASE WHEN NOT found.waited THEN 'autonomous' END)
    ) AS kind (name)
    WHERE run.kind = 'thread.finished'
      AND run.at >= %(start)s AND run.at < %(end)s
    """,
    Combination.DISTINCT,
)
make_rate = build_rate_maker(["autonomous"], ["finished"])


def build_chart(readings: Readings) -> Chart:
    """The share per day, and per tool that the runs used."""
    return build_daily_rate_chart(
        readings,
        RUNS,
        make_rate,
        lambda rate: say_rate(
            rate,
            "{} of the finished runs never waited for a person.",
            "No run finished in this period.",
        ),
        label="never waited for a person",
    )


PLOT = Plot(
    slug="autonomous-completion",
    title="Autonomous completion rate",
    group=Group.OUTCOMES,
    place=10,
    definition=(
        "Finished runs that never waited for a person, divided by all finished runs. "
        "A run counts on the day on which it finished, and for each tool and risk "
        "level that it proposed. A run that had an approval request waited, however "
        "short."
    ),
    measures=[RUNS],
    build=build_chart,
    sliced=[RUNS],
)

"""Effects that were reversed, or that an alarm was raised about, within seven days."""

from __future__ import annotations

from collections.abc import Mapping

from ..charts import Chart, Group, Plot
from ..measures import Measure
from ..readings import Rate, Readings
from ..series import build_dot_chart, split_bins, sum_rates, word_rate

_REGRET = """
    (EXISTS (SELECT FROM reviews_reversal AS reversal
             WHERE reversal.execution_id = execution.id
               AND reversal.at <= execution.finished_at + interval '7 days')
     OR EXISTS (SELECT FROM reviews_sighting AS sighting
                WHERE sighting.execution_id = execution.id AND sighting.near_miss
                  AND sighting.at <= execution.finished_at + interval '7 days')
     OR EXISTS (SELECT FROM reviews_alarm AS alarm
                WHERE alarm.subject = execution.id
                  AND alarm.kind NOT IN ('never_executed', 'not_taken_up')
                  AND alarm.opened_at <= execution.finished_at + interval '7 days'))
"""
EXECUTED = Measure(
    "regret",
    f"""
    SELECT proposal.tool_name, revision.risk,
           CASE WHEN request.id IS NULL THEN 'unasked'
                WHEN revision.author_kind = 'person' THEN 'modified'
                WHEN execution.batch_id IS NOT NULL THEN 'batch'
                ELSE 'approved' END || chr(31) || kind.name,
           1
    FROM (SELECT proposal_id FROM reviews_approvalrequest
          WHERE settled_at >= %(start)s AND settled_at < %(end)s
            AND status = 'authorized'
          UNION ALL
          SELECT own.id FROM reviews_proposal AS own
          WHERE own.created_at >= %(start)s AND own.created_at < %(end)s
            AND NOT EXISTS (SELECT FROM reviews_approvalrequest AS asked
                            WHERE asked.proposal_id = own.id)) AS due
    JOIN reviews_proposal AS proposal ON proposal.id = due.proposal_id
    JOIN reviews_execution AS execution ON execution.proposal_id = proposal.id
        AND execution.status = 'succeeded'
    JOIN reviews_grant AS permit ON permit.id = execution.grant_id
    JOIN reviews_revision AS revision ON revision.id = permit.revision_id
    LEFT JOIN reviews_approvalrequest AS request ON request.proposal_id = proposal.id
    CROSS JOIN LATERAL (VALUES
        ('executed'), (CASE WHEN {_REGRET} THEN 'regret' END)
    ) AS kind (name)
    """,  # noqa: S608 constants
)
LABELS = {
    "approved": "approved as proposed",
    "modified": "changed and approved",
    "batch": "approved in a batch",
    "unasked": "nobody was asked",
}


def make_rate(bins: Mapping[str, int]) -> Rate:
    """Over all ways in which an effect can come about."""
    return sum_rates(_split_rates(bins).values())


def build_chart(readings: Readings) -> Chart:
    """One dot for each way in which the effect came about."""
    rates = _split_rates(readings.bins(EXECUTED))
    sentence = word_rate(
        sum_rates(rates.values()),
        "{} of the effects were reversed or reported as wrong within seven days.",
        "Nothing was executed in this period.",
    )
    columns = ("Decision", "Rate", "Regretted", "Executed")
    return build_dot_chart(sentence, columns, rates)


def _split_rates(bins: Mapping[str, int]) -> dict[str, Rate]:
    ways = split_bins(bins)
    return {
        label: Rate(ways[way].get("regret", 0), ways[way].get("executed", 0))
        for way, label in LABELS.items()
    }


PLOTS = [
    Plot(
        slug="regret",
        title="Regret after execution",
        group=Group.EFFECTS,
        place=20,
        definition=(
            "Effects for which, within seven days, somebody proposed a reversal or "
            "reported a near miss, or Counterseal raised an alarm about what was "
            "executed, divided by all effects that succeeded, by how they were "
            "decided. It counts on the day on which the request was settled; without a "
            "request, on the day of the proposal."
        ),
        measures=[EXECUTED],
        build=build_chart,
        sliced=[EXECUTED],
    ),
]

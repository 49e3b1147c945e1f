"""Which arguments people change, per tool."""

from __future__ import annotations

from ..charts import Bar, BarPanel, Chart, Group, Plot
from ..measures import Measure
from ..readings import Readings

# The names of the tool's arguments, never their values.
FIELDS = Measure(
    "modified_fields",
    """
    SELECT request.tool_name, request.risk, field.name, 1
    FROM reviews_approvalrequest AS request
    JOIN reviews_revision AS after ON after.proposal_id = request.proposal_id
        AND after.author_kind = 'person'
    JOIN reviews_revision AS before ON before.proposal_id = request.proposal_id
        AND before.number = after.number - 1
    CROSS JOIN LATERAL (
        SELECT convert_from(after.canonical, 'UTF8')::jsonb -> 'args' AS new,
               convert_from(before.canonical, 'UTF8')::jsonb -> 'args' AS old
    ) AS args
    CROSS JOIN LATERAL (
        SELECT key AS name FROM jsonb_object_keys(args.new || args.old) AS key
        WHERE args.new -> key IS DISTINCT FROM args.old -> key
    ) AS field
    WHERE request.settled_at >= %(start)s AND request.settled_at < %(end)s
      AND after.number > 1
    """,
)
MOST_BARS = 20


def build_chart(readings: Readings) -> Chart:
    """One bar an argument of a tool, the most frequent first."""
    changes = [
        (tool, name, count)
        for tool, bins in readings.by_tool(FIELDS).items()
        for name, count in bins.items()
    ]
    changes.sort(key=lambda change: (-change[2], change))
    sentence = "People changed no argument in this period."
    if changes:
        tool, name, count = changes[0]
        sentence = f"People most often change “{name}” of {tool}: {count:,} times."
    bars = [
        Bar(f"{tool}: {name}", [count]) for tool, name, count in changes[:MOST_BARS]
    ]
    return Chart(
        sentence,
        ("Tool", "Argument", "Changes"),
        changes,
        [BarPanel(["changes"], bars)] if bars else [],
    )


PLOTS = [
    Plot(
        slug="modified-fields",
        title="What people change",
        group=Group.OUTCOMES,
        place=80,
        definition=(
            "How often a person changed each argument of a tool, on the day on which "
            "the request was settled. Only the names of arguments are counted, never "
            "values. What people change again and again belongs in the agent's "
            "instructions or in the policy."
        ),
        measures=[FIELDS],
        build=build_chart,
        sliced=[FIELDS],
    ),
]

"""How often people are asked, beside how often they catch something, per family."""

from __future__ import annotations

from ..charts import Chart, Dot, DotPanel, Group, Plot, format_rate
from ..measures import DECIDED, Measure
from ..readings import Bins, Rate, Readings
from ..series import build_rates, list_rate_cells, split_bins

# A blocked proposal is answered by the policy alone: nobody could be asked.
PROPOSED = Measure(
    "proposed",
    """
    SELECT proposal.tool_name, revision.risk,
           kind.name || chr(31) || coalesce(revision.evaluation ->> 'effect_class', ''),
           1
    FROM reviews_proposal AS proposal
    JOIN reviews_revision AS revision
        ON revision.proposal_id = proposal.id AND revision.number = proposal.revision
    LEFT JOIN reviews_approvalrequest AS request ON request.proposal_id = proposal.id
    CROSS JOIN LATERAL (VALUES
        ('proposed'), (CASE WHEN request.id IS NOT NULL THEN 'asked' END)
    ) AS kind (name)
    WHERE proposal.created_at >= %(start)s AND proposal.created_at < %(end)s
      AND proposal.blocked_by = '' AND NOT proposal.canary
    """,
)
CAUGHT = Measure(
    "caught",
    f"""
    SELECT request.tool_name, request.risk,
           kind.name || chr(31) || coalesce(revision.evaluation ->> 'effect_class', ''),
           1
    FROM {DECIDED}
    JOIN reviews_proposal AS proposal ON proposal.id = request.proposal_id
    JOIN reviews_revision AS revision
        ON revision.proposal_id = proposal.id AND revision.number = proposal.revision
    CROSS JOIN LATERAL (VALUES
        ('decided'),
        (CASE WHEN request.status = 'rejected' OR request.modified THEN 'caught' END)
    ) AS kind (name)
    """,  # noqa: S608 constants
)


def build_chart(readings: Readings) -> Chart:
    """Two dots a family, in two panels of the same order."""
    asked = _collect_families(readings.by_tool(PROPOSED), "asked", "proposed")
    caught = _collect_families(readings.by_tool(CAUGHT), "caught", "decided")
    names = sorted({*asked, *caught})
    nothing = Rate(0, 0)
    rows = [
        (name, asked.get(name, nothing), caught.get(name, nothing)) for name in names
    ]
    return Chart(
        _say_families(rows),
        ("Action family", "Asked", "Asked, count", "Proposed", "Caught", "Count", "Of"),
        [(name, *list_rate_cells(a), *list_rate_cells(c)) for name, a, c in rows],
        [
            DotPanel([Dot(name, a) for name, a, _ in rows], "A person is asked"),
            DotPanel([Dot(name, c) for name, _, c in rows], "People reject or change"),
        ]
        if rows
        else [],
    )


def _collect_families(tools: dict[str, Bins], counted: str, of: str) -> dict[str, Rate]:
    """The rate of each tool, or of each effect class of a tool that has some."""
    return {
        f"{tool}: {effect}" if effect else tool: rate
        for tool, bins in tools.items()
        for effect, rate in build_rates(bins, counted, of, split_bins(bins)[of]).items()
    }


def _say_families(rows: list[tuple[str, Rate, Rate]]) -> str:
    idle = [row for row in rows if not row[2].few and row[2].count == 0]
    if not rows:
        return "No agent proposed anything in this period."
    sentence = f"{len(rows)} kinds of action were proposed."
    if not idle:
        advice = "Compare how often people are asked with how often they step in."
        return f"{sentence} {advice}"
    name, asked, caught = max(idle, key=lambda row: row[1].count)
    return (
        f"{sentence} For {name}, people were asked in {format_rate(asked)} of the cases"
        f" and changed or rejected none of {caught.total:,}."
    )


PLOTS = [
    Plot(
        slug="asked-and-caught",
        title="Asked and caught, per action family",
        group=Group.OUTCOMES,
        place=70,
        definition=(
            "Asked: proposals for which people were asked, divided by all proposals "
            "that the policy did not block, on the day of the proposal. Caught: "
            "requests that people rejected or changed, divided by those they decided, "
            "on the day of the decision; an approval that was undone decides nothing. "
            "A family is a tool, or an effect class of a tool. Often asked and seldom "
            "caught costs attention; seldom asked and often caught is a gap."
        ),
        measures=[PROPOSED, CAUGHT],
        build=build_chart,
        sliced=[PROPOSED, CAUGHT],
    ),
]

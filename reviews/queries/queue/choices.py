"""What the queue can be narrowed to. Nothing is looked for in every row: tools are
those of the queues, agents come from the index, one step an agent."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection

from policies.choices import Risk
from reviews.desk.queue.filters import SORTS, Filters
from reviews.desk.queue.rows import Row
from reviews.desk.queue.search import Reach
from reviews.queries.selects import Choice, choice

MOST_AGENTS = 100
# From one agent that waits to the next, in every queue that the person reads; and the
# tools whose home these queues are.
_NAMES = """
WITH RECURSIVE found (agent) AS (
  (SELECT r.agent FROM reviews_approvalrequest AS r
   WHERE r.status = 'pending' AND {read} ORDER BY r.agent LIMIT 1)
  UNION ALL
  SELECT (SELECT r.agent FROM reviews_approvalrequest AS r
          WHERE r.status = 'pending' AND r.agent > found.agent AND {read}
          ORDER BY r.agent LIMIT 1)
  FROM found WHERE found.agent IS NOT NULL
)
(SELECT 'agent', agent FROM found WHERE agent IS NOT NULL LIMIT {most})
UNION ALL
SELECT DISTINCT 'tool', r.name FROM policies_tool AS r WHERE {read}
"""


def of(reach: Reach, filters: Filters, rows: Iterable[Row]) -> list[Choice]:
    """The selects of a tab; what its rows show is always among the choices."""
    rows, names = list(rows), _names(reach, filters)
    agents = {row.agent for row in rows} | {filters.agent} | names["agent"]
    tools = {row.tool for row in rows} | {filters.tool} | names["tool"]
    risks = {one.value: one.value.title() for one in Risk}
    found = [
        _choice("risk", "Risk", {"": "any"} | risks, filters),
        _choice("tool", "Tool", _any(tools), filters),
        _choice("agent", "Agent", _any(agents), filters),
    ]
    if filters.tab != "done":
        found.append(_choice("sort", "Sort", SORTS, filters))
    return found


def _names(reach: Reach, filters: Filters) -> dict[str, set[str]]:
    """Agents with something that waits, and tools, that this person may read of."""
    found: dict[str, set[str]] = {"agent": set(), "tool": set()}
    if filters.tab == "done":
        return found
    sql = _NAMES.format(read=reach.reads, most=MOST_AGENTS)
    with connection.cursor() as cursor:
        cursor.execute(sql, {"mine": reach.queues})
        for kind, name in cursor.fetchall():
            found[kind].add(name)
    return found


def _any(values: Iterable[str]) -> dict[str, str]:
    return {"": "any"} | {one: one for one in sorted(values) if one}


def _choice(name: str, label: str, said: dict[str, str], filters: Filters) -> Choice:
    return choice(name, label, said, getattr(filters, name))

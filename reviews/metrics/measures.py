"""What a measure is: a query for the facts of one UTC day, and how its figures add up.

Times are kept as whole seconds with two significant digits, so that a day's histogram
is small. A median or p90 read from it is exact up to 100 seconds, and differs from the
exact one by at most 5 % above that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Combination(StrEnum):
    """How the values of one bin become one figure, as SQL."""

    SUM = "sum(value)"
    LOWEST = "min(value)"
    DISTINCT = "count(DISTINCT value)"  # of one day; a value belongs to one day only


@dataclass(frozen=True, slots=True)
class Measure:
    """One set of figures a day.

    `facts` is a SELECT of (tool, risk, bin, value). It reads the day from `%(start)s`
    up to, but not including, `%(end)s`. A fact without a bin is left out; one without a
    tool or risk counts only where all tools or risk levels are meant.
    """

    name: str
    facts: str
    combine: Combination = Combination.SUM
    # Whether plots read it per tool at each risk level, too: too much for a histogram.
    crossed: bool = True

    def add_values(self, values: list[int]) -> int:
        """The figure of several days."""
        return min(values) if self.combine is Combination.LOWEST else sum(values)

    @property
    def sql(self) -> str:
        """The query for a day's figures, as (tool, risk, bin, value). Its parameters
        are `start` and `end`."""
        return _SELECT.format(combine=self.combine.value, facts=self.facts)


# Each level of detail is computed from the facts; the HAVING leaves out those that a
# fact without a tool or risk has no part in.
_SELECT = """
SELECT coalesce(tool, ''), coalesce(risk, ''), left(bin, 200), {combine}
FROM ({facts}) AS fact (tool, risk, bin, value)
WHERE bin IS NOT NULL
GROUP BY GROUPING SETS (
    (left(bin, 200), tool, risk), (left(bin, 200), tool),
    (left(bin, 200), risk), (left(bin, 200)))
HAVING (grouping(tool) = 1 OR tool IS NOT NULL)
   AND (grouping(risk) = 1 OR risk IS NOT NULL)
"""
# Parts of a bin that has several, such as a reason, a rule and an agent's version.
SEPARATOR = "\x1f"


def build_seconds_sql(interval: str) -> str:
    """The bin of a time: its whole seconds, with two significant digits from 100 on;
    null for a null interval, and 0 for a negative one."""
    seconds = (  # not greatest(), which takes no notice of a null
        f"(CASE WHEN {interval} < interval '0' THEN 0"
        f" ELSE extract(epoch FROM {interval}) END)"
    )
    return _SECONDS.format(seconds=seconds)


_SECONDS = """(CASE WHEN {seconds} < 100 THEN round({seconds})
     ELSE round({seconds}, 1 - floor(log({seconds}))::integer) END)::bigint::text"""


def find_percentile(counts: Mapping[str, int], share: float) -> int | None:
    """The smallest number of seconds that at least this share of a histogram does not
    exceed; None for an empty one."""
    total, seen = sum(counts.values()), 0
    for seconds in sorted(map(int, counts)):
        seen += counts[str(seconds)]
        if seen >= share * total:
            return seconds
    return None


# Requests that people decided in the day: what they were, whether a person changed the
# arguments, and whether one escalated it.
DECIDED = """(
    SELECT request.*,
           EXISTS (SELECT FROM reviews_decision AS vote
                   WHERE vote.request_id = request.id AND vote.verdict = 'modify')
               AS modified,
           EXISTS (SELECT FROM reviews_decision AS vote
                   WHERE vote.request_id = request.id AND vote.verdict = 'escalate')
               AS escalated
    FROM reviews_approvalrequest AS request
    WHERE request.settled_at >= %(start)s AND request.settled_at < %(end)s
      AND request.status IN ('authorized', 'rejected')) AS request"""
# Decisions that people gave in the day, each with its request.
GIVEN = """reviews_decision AS decision
    JOIN reviews_approvalrequest AS request ON request.id = decision.request_id"""
GIVEN_IN_DAY = "decision.at >= %(start)s AND decision.at < %(end)s"
# Requests of agents that were open at any time of the day. Each part reads an index of
# its own.
OPEN_IN_DAY = """(
    SELECT * FROM reviews_approvalrequest
    WHERE settled_at >= %(start)s AND opened_at < %(end)s AND NOT canary
    UNION ALL
    SELECT * FROM reviews_approvalrequest
    WHERE status = 'pending' AND opened_at < %(end)s AND NOT canary
    UNION ALL
    SELECT * FROM reviews_approvalrequest
    WHERE status = 'recallable' AND opened_at < %(end)s) AS request"""

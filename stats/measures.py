"""What a measure is: a query for the facts of one UTC day, and how its figures add up.

Times are kept as whole seconds, from 100 on in steps: 10 up to 200, 20 up to 500, 50 up
to 1,000, and ten times these for each digit more. So a day's histogram is small. A
median or p90 read from it is exact up to 100 seconds, and differs from the exact one by
at most 5 % above that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import accumulate

from journal.statements import Statement
from reviews.choices import ANSWERED_SQL, DECIDED_SQL, OPEN


class Combination(StrEnum):
    """How the values of one bin become one figure, as SQL."""

    SUM = "sum(value)"
    LOWEST = "min(value)"
    DISTINCT = "count(DISTINCT value)"  # of one day; a value belongs to one day only


@dataclass(frozen=True)
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

    def add_bins(self, parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
        """The figures of several days: bin by bin, the sum or the lowest value."""
        figures: dict[str, int] = {}
        get = figures.get
        if self.combine is Combination.LOWEST:
            for part in parts:
                for name, value in part.items():
                    figures[name] = min(get(name, value), value)
        else:
            for part in parts:
                for name, value in part.items():
                    figures[name] = get(name, 0) + value
        return figures

    @cached_property
    def figures(self) -> Statement:
        """The query for a day's figures, as (tool, risk, bins), where bins is a JSON
        object of the values. Its parameters are `start` and `end`. It is planned once:
        for a day of few rows that takes longer than to run it."""
        return Statement(_SELECT.format(combine=self.combine.value, facts=self.facts))


# Each level of detail is computed from the facts; the HAVING leaves out those that a
# fact without a tool or risk has no part in. OFFSET: each fact is computed once.
_SELECT = """
SELECT tool, risk, jsonb_object_agg(bin, value)::text FROM (
SELECT coalesce(tool, ''), coalesce(risk, ''), left(bin, 200), {combine}
FROM (SELECT * FROM ({facts}) AS found (tool, risk, bin, value) OFFSET 0)
    AS fact (tool, risk, bin, value)
WHERE bin IS NOT NULL
GROUP BY GROUPING SETS (
    (left(bin, 200), tool, risk), (left(bin, 200), tool),
    (left(bin, 200), risk), (left(bin, 200)))
HAVING (grouping(tool) = 1 OR tool IS NOT NULL)
   AND (grouping(risk) = 1 OR risk IS NOT NULL)
) AS figure (tool, risk, bin, value) GROUP BY tool, risk
"""
# Parts of a bin that has several, such as a reason, a rule and an agent's version.
SEPARATOR = "\x1f"


def build_seconds_sql(interval: str) -> str:
    """The bin of a time: its whole seconds, in steps from 100 on; null for a null
    interval, and 0 for a negative one."""
    return _SECONDS.format(interval=interval)


# OFFSET keeps PostgreSQL from computing a part anew wherever it is named. A CASE and
# not greatest(), which takes no notice of a null. Floats, because numeric is slow.
_SECONDS = """(
    SELECT (CASE WHEN s < 100 THEN floor(s + 0.5)
                 ELSE floor(s / step + 0.5) * step END)::bigint::text
    FROM (SELECT {interval} OFFSET 0) AS taken (length)
    CROSS JOIN LATERAL (
        SELECT CASE WHEN length < interval '0' THEN 0
                    ELSE extract(epoch FROM length)::float8 END OFFSET 0) AS spent (s)
    CROSS JOIN LATERAL (
        SELECT 10 ^ floor(log(greatest(s, 100))) OFFSET 0) AS decade (p)
    CROSS JOIN LATERAL (
        SELECT p * CASE WHEN s < 2 * p THEN 0.1 WHEN s < 5 * p THEN 0.2
                        ELSE 0.5 END OFFSET 0) AS stepped (step))"""


def find_percentiles(
    counts: Mapping[str, int], shares: Iterable[float]
) -> list[int | None]:
    """For each share, the smallest number of seconds that at least this share of a
    histogram does not exceed; None for an empty one."""
    if not counts:
        return [None for _ in shares]
    # The order of numbers, without a conversion of each: shorter ones first.
    ordered = sorted(sorted(counts), key=len)
    upto = list(accumulate(counts[seconds] for seconds in ordered))
    return [int(ordered[bisect_left(upto, share * upto[-1])]) for share in shares]


# Requests that people decided in the day: what they were, whether a person changed the
# arguments, and whether one escalated it.
DECIDED = f"""(
    SELECT request.*,
           EXISTS (SELECT FROM reviews_decision AS vote
                   WHERE vote.request_id = request.id AND vote.verdict = 'modify')
               AS modified,
           EXISTS (SELECT FROM reviews_decision AS vote
                   WHERE vote.request_id = request.id AND vote.verdict = 'escalate')
               AS escalated
    FROM reviews_approvalrequest AS request
    WHERE request.settled_at >= %(start)s AND request.settled_at < %(end)s
      AND request.status IN ({DECIDED_SQL})) AS request"""  # noqa: S608 constants
# Whether people decided a request in the day, or let it expire.
ANSWERED_IN_DAY = f"""request.settled_at >= %(start)s AND request.settled_at < %(end)s
      AND request.status IN ({ANSWERED_SQL})"""
# Decisions that people gave in the day, each with its request.
GIVEN = """reviews_decision AS decision
    JOIN reviews_approvalrequest AS request ON request.id = decision.request_id"""
GIVEN_IN_DAY = "decision.at >= %(start)s AND decision.at < %(end)s"
# Whether a decision was not undone by a recall, which seals the version after the one
# whose votes it takes back.
NOT_UNDONE = """NOT EXISTS (
    SELECT FROM reviews_requestversion AS later
    WHERE later.request_id = decision.request_id
      AND later.number = decision.version + 1 AND later.cause = 'recalled')"""
# Requests of agents that were open at any time of the day. Each part reads an index of
# its own.
_STILL_OPEN = "".join(
    f"""UNION ALL
    SELECT * FROM reviews_approvalrequest
    WHERE status = '{status}' AND opened_at < %(end)s AND NOT canary
    """  # noqa: S608 constants
    for status in OPEN
)
OPEN_IN_DAY = f"""(
    SELECT * FROM reviews_approvalrequest
    WHERE settled_at >= %(start)s AND opened_at < %(end)s AND NOT canary
    {_STILL_OPEN}) AS request"""  # noqa: S608 constants

"""The queue's numbers: what each tab holds, whether it is too much, and one's own day.
Nothing is counted further than it says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

from policies.choices import Role
from reviews.desk.queue import search
from reviews.desk.queue.filters import Filters
from reviews.desk.queue.search import MOST_COUNTED, Reach

# More than this waits for each person at the desk: too much (ux.md 4.1).
MOST_EACH = 25
LATELY = timedelta(minutes=30)
# What one person at the desk decides in half an hour, whatever they did in the last:
# a minute each is the time for what is high (ux.md 6.2).
PACE_EACH = 25
_NEWEST = 300  # decisions that the pace is read from

_TAB = "(SELECT count(*) FROM ({source}) AS r)"
# Who was at the desk lately: who decided, or holds something now.
_FIGURES = """
WITH lately AS (
  SELECT vote.reviewer_id AS who FROM
    (SELECT reviewer_id, at FROM reviews_decision
     ORDER BY id DESC LIMIT {newest}) AS vote
  WHERE vote.at > %(now)s - %(lately)s
), desk AS (
  SELECT greatest(count(DISTINCT who), 1) AS people,
         greatest((SELECT count(*) FROM lately),
                  {pace} * greatest(count(DISTINCT who), 1)) AS pace
  FROM (SELECT who FROM lately
        UNION SELECT holder_id FROM reviews_lease
        WHERE holder_id IS NOT NULL AND until > %(now)s) AS present
)
SELECT {mine}, {waiting}, {done}, {unknown}, desk.people, desk.pace,
  (SELECT count(*) FROM {open} AS r) AS open,
  (SELECT count(*) FROM {due} AS r) AS due
FROM desk
"""
_UNKNOWN = """(SELECT count(*) FROM
  (SELECT FROM reviews_execution AS x
   JOIN reviews_grant AS g ON g.id = x.grant_id
   JOIN reviews_revision AS v ON v.id = g.revision_id
   JOIN policies_tool AS t ON t.id = v.tool_id
   WHERE x.status = 'unknown' AND t.queue_id = ANY (%(mine)s::bigint[])
   LIMIT {most}) AS x)"""
# How many are open, and how many of these are due soon: no more than makes too much.
_ENOUGH = f"(SELECT people * {MOST_EACH} + 1 FROM desk)"  # noqa: S608 our numbers
_ENOUGH_DUE = f"(SELECT pace + {MOST_COUNTED} FROM desk)"  # noqa: S608 the same
_MEASURED = (("true", _ENOUGH), ("r.expires_at <= %(now)s + %(lately)s", _ENOUGH_DUE))
_OWN_DAY = """
SELECT count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY took_ms)
FROM reviews_decision WHERE reviewer_id = %s AND at >= date_trunc('day', %s, 'UTC')
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """What the tabs hold beside Open, and how the desk stands against what waits."""

    mine: int
    waiting: int
    done: int
    unknown: int
    people: int
    pace: int
    open: int
    due: int

    @property
    def lapsing(self) -> int:
        """How many will expire in the next half hour at the pace of the last one."""
        return max(self.due - self.pace, 0)

    @property
    def overloaded(self) -> bool:
        return self.open > self.people * MOST_EACH or self.lapsing > 0


@dataclass(frozen=True, slots=True)
class OwnDay:
    """What this person decided today, and how long the middle one took."""

    decided: int
    seconds: int | None


def count(reach: Reach, now: datetime) -> Figures:
    """All of it in one statement."""
    elsewhere = "waiting" if reach.role else "open"  # whoever reads only: all of it
    tab = {
        name: _TAB.format(source=search.source(reach, Filters(tab=tab)))
        for name, tab in (("mine", "mine"), ("waiting", elsewhere), ("done", "done"))
    }
    settles = reach.role is Role.SUPERVISOR
    open_, due = (
        search.decidable(reach, where, most) if reach.role else "(SELECT WHERE false)"
        for where, most in _MEASURED
    )
    sql = _FIGURES.format(
        **tab,
        open=open_,
        due=due,
        unknown=_UNKNOWN.format(most=MOST_COUNTED) if settles else "0",
        newest=_NEWEST,
        pace=PACE_EACH,
    )
    given = search.given(reach, Filters(), now)
    with connection.cursor() as cursor:
        cursor.execute(sql, given | {"most": MOST_COUNTED, "lately": LATELY})
        numbers = cursor.fetchone()
    return Figures(*(min(n, MOST_COUNTED) for n in numbers[:4]), *numbers[4:])


def own_day(reach: Reach, now: datetime) -> OwnDay:
    """For the moment when nothing waits."""
    with connection.cursor() as cursor:
        cursor.execute(_OWN_DAY, [reach.person.pk, now])
        decided, took = cursor.fetchone()
    return OwnDay(decided, None if took is None else max(round(took / 1000), 1))

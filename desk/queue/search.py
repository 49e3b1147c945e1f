"""Which requests a list shows, and in which order.

One statement walks a few indexes and stops at the end of the page, so that its cost
does not depend on how many others wait (bench/scale.py measures it). The rule equals
`visibility.select_decidable` on the same columns; a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection

from policies.choices import Risk, Role
from policies.models import Person
from reviews import permissions
from reviews.requests.versions import RISK_BANDS
from reviews.roles import Permission

from .filters import QueueFilters

DONE_FOR = timedelta(days=7)
# Repeats and tab numbers are counted up to here; the page prints "99+".
MOST_COUNTED = 100

_COLUMNS = """r.id, r.rank, r.expires_at, r.opened_at, r.settled_at, r.repeat_key,
  r.queue_id, r.tier, r.supervisors_only, r.currency, r.amount_minor"""
# A lane is one queue and one value of supervisors_only: within a lane, the index has
# the order of the list.
_LANES = """
(SELECT r.* FROM unnest({queues}) AS lane (queue)
 CROSS JOIN unnest({kinds}) AS kind (supervisors_only)
 CROSS JOIN LATERAL (
   SELECT {columns} FROM reviews_approvalrequest AS r
   WHERE r.status = 'pending' AND r.queue_id = lane.queue
     AND r.supervisors_only = kind.supervisors_only
     AND r.canary_for IN ('', %(me)s)
     AND r.expires_at > %(now)s {where} {order} LIMIT {most}) AS r)
"""
_SIMPLE = """
(SELECT {columns} FROM reviews_approvalrequest AS r
 WHERE r.canary_for IN ('', %(me)s) AND {where} {order} LIMIT {most})
"""
_FIND = """
SELECT r.id, {repeats} FROM
  (SELECT * FROM ({source}) AS r {order} LIMIT %(most)s) AS r
  {twins}
{order}
"""
_TWIN = """twin.repeat_key = r.repeat_key AND twin.status = 'pending'
  AND twin.queue_id = r.queue_id AND twin.rank = r.rank AND twin.tier = r.tier
  AND twin.supervisors_only = r.supervisors_only AND twin.expires_at > %(now)s
  AND NOT %(me)s = ANY (twin.barred) AND NOT %(me)s = ANY (twin.closed_to)"""
_FIRST_OF_TWINS = f"""
  AND NOT EXISTS (SELECT FROM reviews_approvalrequest AS twin WHERE {_TWIN}
                  AND (twin.expires_at, twin.id) < (r.expires_at, r.id))
"""
# A batch is shown on the row of its most urgent member that this person can decide.
# Identical requests share a row only outside of batches, or one could lose its row.
_BATCHED = """EXISTS (SELECT FROM reviews_batchitem AS item
  JOIN reviews_batch AS batch ON batch.id = item.batch_id
  WHERE item.request_id = {0}.id AND item.left_at IS NULL
    AND batch.status IN ('forming', 'open'))"""
_FIRST_OF_BATCH = """
  AND NOT EXISTS (SELECT FROM reviews_batchitem AS own
    JOIN reviews_batch AS batch ON batch.id = own.batch_id
    JOIN reviews_batchitem AS other ON other.batch_id = own.batch_id
    JOIN reviews_approvalrequest AS mate ON mate.id = other.request_id
    WHERE own.request_id = r.id AND own.left_at IS NULL AND other.left_at IS NULL
      AND batch.status IN ('forming', 'open')
      AND mate.status = 'pending' AND mate.expires_at > %(now)s
      AND mate.queue_id = r.queue_id AND mate.supervisors_only = r.supervisors_only
      AND NOT %(me)s = ANY (mate.barred) AND NOT %(me)s = ANY (mate.closed_to)
      AND (mate.rank, mate.expires_at, mate.id) < (r.rank, r.expires_at, r.id)
    OFFSET 0)
"""  # OFFSET 0 keeps this a subquery for each row of the page, not a join over all
_GATHERED = f"""{_FIRST_OF_BATCH}
  AND ({_BATCHED.format("r")} OR NOT EXISTS (
    SELECT FROM reviews_approvalrequest AS twin WHERE {_TWIN}
      AND (twin.expires_at, twin.id) < (r.expires_at, r.id)
      AND NOT {_BATCHED.format("twin")}))
"""
_TWINS = f"""
CROSS JOIN LATERAL (
  SELECT count(*) AS n, min(opened_at) AS since FROM
    (SELECT twin.opened_at FROM reviews_approvalrequest AS twin
     WHERE {_TWIN} LIMIT {MOST_COUNTED}) AS twin) AS twins
"""  # noqa: S608 the parts are constants
_MOST = "%(most)s"
_MINE = "%(mine)s::bigint[]"
_EVERY = "ARRAY(SELECT id FROM policies_queue)"
_OTHERS = "ARRAY(SELECT id FROM policies_queue WHERE NOT id = ANY (%(mine)s::bigint[]))"
_BOTH = "'{false,true}'::boolean[]"
_PENDING = "r.status = 'pending' AND r.expires_at > %(now)s"
_OVERDUE = "r.status = 'pending' AND r.expires_at <= %(now)s"
_SETTLED = "r.settled_at > %(since)s"
_OWN = "%(me)s = ANY (r.barred)"
_NOT_CLOSED = """
  AND NOT %(me)s = ANY (r.barred) AND NOT %(me)s = ANY (r.closed_to)
  AND NOT EXISTS (SELECT FROM reviews_stop AS stop WHERE stop.scope = 'reviewer'
                  AND stop.key = %(me)s AND stop.lifted_at IS NULL)
"""
# The first half repeats the partial index's condition literally.
_CLOSED = """NOT (r.closed_to = '{}'::varchar(40)[])
  AND r.closed_to @> ARRAY[%(me)s]::varchar(40)[]"""
_HELD = """r.id IN (SELECT hold.request_id FROM reviews_hold AS hold
  WHERE hold.holder_id = %(person)s AND hold.until > %(now)s)"""
_OFFERED = """r.id IN (SELECT hold.request_id FROM reviews_hold AS hold
  WHERE hold.offered_to_id = %(person)s AND hold.until > %(now)s)"""
_DECIDED = """r.id IN (SELECT vote.request_id FROM reviews_decision AS vote
  WHERE vote.reviewer_id = %(person)s AND vote.at > %(since)s)"""

ORDERS = {
    "left": "ORDER BY r.rank, r.expires_at, r.id",
    "newest": "ORDER BY r.opened_at DESC, r.id DESC",
    "oldest": "ORDER BY r.opened_at, r.id",
    "largest": "ORDER BY r.currency DESC, r.amount_minor DESC, r.id DESC",
    "smallest": "ORDER BY r.currency, r.amount_minor, r.id",
}
# One index has both orders by amount. Requests without one come last in either, so they
# are a part of their own.
_AMOUNT_PARTS = (" AND r.currency > ''", " AND r.currency = ''")
_AMOUNTS_FIRST = "ORDER BY r.currency = '', "
DONE_ORDER = "ORDER BY r.settled_at DESC NULLS FIRST, r.id"
_RANKS = {risk.value: RISK_BANDS[risk] * 10 for risk in Risk}
_FILTERS = {
    "risk": "r.risk = %(risk)s AND r.rank BETWEEN %(rank)s AND %(rank)s + 9",
    "tool": "r.tool_name = %(tool)s",
    "agent": "r.agent = %(agent)s",
    "same": "r.repeat_key = %(same)s::uuid",
    "q": """(lower(r.id) = lower(%(q)s) OR lower(r.proposal_id) = lower(%(q)s)
      OR strpos(lower(r.tool_name), lower(%(q)s)) > 0
      OR EXISTS (SELECT FROM reviews_proposal AS p WHERE p.id = r.proposal_id
                 AND strpos(lower(p.thread), lower(%(q)s)) > 0))""",
}


class FoundRequest(NamedTuple):
    """One row of a list: the request, and how many identical ones share its row."""

    id: str
    repeats: int = 1
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class QueueReach:
    """A person's queues, their role in them, and what else they may read."""

    person: Person
    role: Role | None
    queues: list[int]
    sees_all: bool
    owns: bool

    @classmethod
    def of(cls, person: Person) -> QueueReach:
        return cls(
            person=person,
            role=permissions.find_deciding_role(person),
            queues=sorted(permissions.queues_of(person)),
            sees_all=permissions.has_permission(person, Permission.SEE_ALL),
            owns=Role.OWNER in permissions.roles_of(person),
        )

    @property
    def can(self) -> str:
        """SQL array of `supervisors_only` values that this person can decide."""
        return _BOTH if self.role is Role.SUPERVISOR else "'{false}'::boolean[]"

    @property
    def cannot(self) -> str:
        """SQL array of `supervisors_only` values that they cannot."""
        return (
            "'{}'::boolean[]" if self.role is Role.SUPERVISOR else "'{true}'::boolean[]"
        )

    @property
    def reads(self) -> str:
        """SQL condition on a request whose queue this person reads."""
        return "true" if self.sees_all else f"r.queue_id = ANY ({_MINE})"


def find_requests(
    reach: QueueReach, filters: QueueFilters, *, now: datetime
) -> list[FoundRequest]:
    """Find the requests of one page, and one more when there are more."""
    order = DONE_ORDER if filters.tab == "done" else ORDERS[filters.sort]
    if filters.tab == "mine":  # a colleague waits for an answer
        order = order.replace("ORDER BY", f"ORDER BY {_OFFERED} DESC,")
    by_amount = bool(filters.amount_order)
    collapses = filters.collapses and reach.role is not None
    sql = _FIND.format(
        source=build_tab_sql(reach, filters, order),
        order=order.replace("ORDER BY ", _AMOUNTS_FIRST) if by_amount else order,
        repeats="twins.n, twins.since" if collapses else "1, NULL",
        twins=_TWINS if collapses else "",
    )
    with connection.cursor() as cursor:
        cursor.execute(
            sql, build_parameters(reach, filters, now) | {"most": filters.show + 1}
        )
        return [FoundRequest(*row) for row in cursor.fetchall()]


def build_parameters(
    reach: QueueReach, filters: QueueFilters, now: datetime
) -> dict[str, Any]:
    """Build the parameters of every statement here, except `most`, which limits each
    branch."""
    return {
        **{name: getattr(filters, name) for name in _FILTERS},
        "rank": _RANKS.get(filters.risk, 0),
        "me": reach.person.public_id,
        "person": reach.person.pk,
        "mine": reach.queues,
        "now": now,
        "since": now - DONE_FOR,
    }


def build_tab_sql(reach: QueueReach, filters: QueueFilters, order: str = "") -> str:
    """Build a tab's rows as SQL, before the limit. Without an order the result serves
    only for counting."""
    conditions = [_FILTERS[name] for name in _FILTERS if getattr(filters, name)]
    where = "".join(f" AND {condition}" for condition in conditions)
    build = _BRANCHES[filters.tab]
    parts = _AMOUNT_PARTS if order and filters.amount_order else ("",)
    alternatives = [build(reach, filters, where + part, order) for part in parts]
    return " UNION ".join(sql for branches in alternatives for sql in branches)


def _build_open_branches(
    reach: QueueReach, filters: QueueFilters, where: str, order: str
) -> list[str]:
    if reach.role is None:
        return _build_readable_branches(reach, where, order)
    where += _NOT_CLOSED + (_build_sharing_condition(filters) if order else "")
    return [_build_lanes_sql(_MINE, reach.can, where, order)]


def _build_sharing_condition(filters: QueueFilters) -> str:
    """Of the requests that share a row, keep the one whose row it is."""
    if filters.gathers:
        return _GATHERED
    return _FIRST_OF_TWINS if filters.collapses else ""


def _build_readable_branches(reach: QueueReach, where: str, order: str) -> list[str]:
    if reach.sees_all:
        recallable = f"r.status = 'recallable'{where}"
        return [
            _build_lanes_sql(_EVERY, _BOTH, where, order),
            _build_simple_sql(recallable, order),
        ]
    read = f"({reach.reads} OR {_OWN})"
    return [
        _build_lanes_sql(_MINE, _BOTH, where, order),
        _build_lanes_sql(_EVERY, _BOTH, f" AND {_OWN}{where}", order),
        _build_simple_sql(f"r.status = 'recallable' AND {read}{where}", order),
    ]


def _build_waiting_branches(
    reach: QueueReach, filters: QueueFilters, where: str, order: str
) -> list[str]:
    """The open requests that are not this person's to decide, one branch a reason."""
    if reach.role is None:
        return [_build_simple_sql("false", order)]
    in_own_queue = f"r.queue_id = ANY ({_MINE})"
    branches = [
        _build_lanes_sql(_MINE, reach.cannot, where, order),
        _build_simple_sql(f"r.status = 'recallable' AND {reach.reads}{where}", order),
        _build_simple_sql(f"{_PENDING} AND {in_own_queue} AND {_CLOSED}{where}", order),
    ]
    if reach.sees_all:
        branches.append(_build_lanes_sql(_OTHERS, _BOTH, where, order))
    if reach.owns:
        branches.append(_build_simple_sql(f"{_PENDING} AND {_OWN}{where}", order))
    return branches


def _build_mine_branches(
    reach: QueueReach, filters: QueueFilters, where: str, order: str
) -> list[str]:
    """The requests that this person holds, those that their holder offers them, and
    those assigned to them."""
    still = f"(r.status = 'recallable' OR {_PENDING})"
    given_to = f"{_PENDING} AND r.assignee_id = %(person)s"
    return [
        _build_simple_sql(f"{_HELD} AND {still}{where}", order),
        _build_simple_sql(f"{given_to}{where}", order),
        _build_simple_sql(f"{build_offered_condition(reach)}{where}", order),
    ]


def build_offered_condition(reach: QueueReach) -> str:
    """Build the SQL condition on a request that is offered to this person, who may
    still decide it."""
    if reach.role is None:
        return "false"
    kinds = f"r.supervisors_only = ANY ({reach.can})"
    may = f"r.queue_id = ANY ({_MINE}) AND {kinds}{_NOT_CLOSED}"
    return f"{_PENDING} AND {_OFFERED} AND {may}"


def _build_done_branches(
    reach: QueueReach, filters: QueueFilters, where: str, order: str
) -> list[str]:
    """The requests that this person decided, and the expired ones, which concern
    everybody."""
    if reach.role is None:
        read = f"({reach.reads} OR {_OWN})"
        return [
            _build_simple_sql(f"{_SETTLED} AND {read}{where}", order),
            _build_simple_sql(f"{_OVERDUE} AND {read}{where}", order),
        ]
    expired = f"r.status = 'expired' AND {_SETTLED} AND {reach.reads}"
    return [
        _build_simple_sql(f"{_DECIDED} AND {_SETTLED}{where}", order),
        _build_simple_sql(f"{expired}{where}", order),
        _build_simple_sql(f"{_OVERDUE} AND {reach.reads}{where}", order),
    ]


def build_decidable_sql(reach: QueueReach, where: str, most: str) -> str:
    """Build SQL for what this person can decide and what meets `where`, in no order."""
    return _build_simple_sql(
        f"{_PENDING} AND r.queue_id = ANY ({_MINE})"
        f" AND r.supervisors_only = ANY ({reach.can}) {_NOT_CLOSED} AND {where}",
        order="",
        most=most,
    )


_BRANCHES = {
    "open": _build_open_branches,
    "waiting": _build_waiting_branches,
    "mine": _build_mine_branches,
    "done": _build_done_branches,
}


def _build_lanes_sql(queues: str, kinds: str, where: str, order: str) -> str:
    return _LANES.format(
        queues=queues,
        kinds=kinds,
        columns=_COLUMNS,
        where=where,
        order=order,
        most=_MOST,
    )


def _build_simple_sql(where: str, order: str, most: str = _MOST) -> str:
    return _SIMPLE.format(columns=_COLUMNS, where=where, order=order, most=most)

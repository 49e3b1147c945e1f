"""The workload page for supervisors: who is at the desk and who could be, what is about
to expire, and which agents ask the most."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Count, Exists, OuterRef

from journal.errors import NotFound
from policies.choices import Role
from policies.models import Person, Queue
from reviews import permissions
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, Decision, Hold
from reviews.workload import MAX_ASSIGNED, MAX_EXTENDED

from ..queue import page as queue_page
from ..queue import search
from ..queue.page import RECENT_PERIOD, QueueFigures, QueueFilters
from ..queue.search import QueueReach

DUTY_RULE = "On duty: holds a request, or decided one in the last 30 minutes."
MOST_PEOPLE = 200
MOST_AGENTS = 10
MOST_READ = 500  # waiting requests from which agents are counted
_OF_AGENTS = "NOT r.canary"
_MORE_TIME = f"""{_OF_AGENTS} AND r.expires_at <= %(now)s + %(lately)s
  AND r.expires_at < r.expires_at_most"""
_TO_GIVE = f"""{_OF_AGENTS} AND r.assignee_id IS NULL
  AND r.queue_id = ANY (%(ours)s::bigint[])
  AND NOT EXISTS (SELECT FROM reviews_hold AS hold WHERE hold.request_id = r.id
                  AND hold.until > %(now)s)"""
_URGENT = (
    "SELECT r.id FROM {source} AS r ORDER BY r.rank, r.expires_at, r.id LIMIT {most}"
)
_DUE = "SELECT r.id FROM {source} AS r ORDER BY r.expires_at, r.id LIMIT {most}"
_ASKING = """
SELECT asked.agent, count(*) AS n,
       count(*) FILTER (WHERE asked.opened_at > %(now)s - %(lately)s) AS fresh
FROM {source} AS r JOIN reviews_approvalrequest AS asked ON asked.id = r.id
GROUP BY asked.agent ORDER BY n DESC, asked.agent LIMIT {most}
"""


@dataclass(frozen=True, slots=True)
class Colleague:
    """A person who may decide in one of the supervisor's queues. `given` counts the
    open requests assigned to them, `free` those that one press assigns to them."""

    person: Person
    role: str
    queues: list[str]
    here: bool
    given: int
    free: int


@dataclass(frozen=True, slots=True)
class AskingAgent:
    """An agent with waiting requests; `fresh` of them arrived lately."""

    agent: str
    waiting: int
    fresh: int


@dataclass(frozen=True, slots=True)
class WorkloadPage:
    """The whole page. The supervisor counts among those on duty like everybody else,
    but is not among `people`."""

    figures: QueueFigures
    until: datetime
    due: int
    people: list[Colleague]
    on_duty: int
    asking: list[AskingAgent]
    most_extended: int = MAX_EXTENDED
    most_read: int = MOST_READ  # waiting requests from which the agents are counted


def load_supervisor_reach(person: Person) -> QueueReach:
    """Load a supervisor's queues. Raises NotFound for everybody else."""
    reach = QueueReach.of(person)
    if reach.role is not Role.SUPERVISOR:
        raise NotFound
    return reach


def build_workload_page(person: Person, now: datetime) -> WorkloadPage:
    """Build the page, in a fixed number of queries. Raises NotFound for everybody but
    supervisors."""
    reach, here = load_supervisor_reach(person), list_present_people(now)
    people = _list_colleagues(reach, here, now)
    return WorkloadPage(
        figures=queue_page.count_queue(reach, now),
        until=now + RECENT_PERIOD,
        due=len(list_due_requests(person, now)),
        people=people,
        on_duty=(person.pk in here) + sum(one.here for one in people),
        asking=_list_asking_agents(reach, now),
    )


def list_due_requests(person: Person, now: datetime) -> list[str]:
    """List the requests that expire within half an hour and can be extended, by
    deadline. Raises NotFound for everybody but supervisors."""
    return _list_ids(_DUE, load_supervisor_reach(person), now, _MORE_TIME, MAX_EXTENDED)


def list_requests_to_give(person: Person, to: Person, now: datetime) -> list[str]:
    """List the most urgent requests that nobody holds and that both people may decide.
    Raises NotFound for everybody but supervisors."""
    ours = load_supervisor_reach(person).queues
    return _list_ids(_URGENT, QueueReach.of(to), now, _TO_GIVE, MAX_ASSIGNED, ours=ours)


def load_colleague(person: Person, public_id: str) -> Person:
    """Load a colleague by public id. Raises NotFound for a person who decides in none
    of the supervisor's queues."""
    colleague = Person.objects.filter(public_id=public_id, is_active=True).first()
    own_queues = set(load_supervisor_reach(person).queues)
    if (
        colleague is None
        or colleague.pk == person.pk
        or not _can_decide_in(colleague, own_queues)
    ):
        raise NotFound
    return colleague


def _can_decide_in(person: Person, queues: Collection[int]) -> bool:
    return permissions.find_deciding_role(person) is not None and not (
        permissions.queues_of(person).isdisjoint(queues)
    )


def _list_ids(
    sql: str, reach: QueueReach, now: datetime, where: str, most: int, **more: Any
) -> list[str]:
    rows = _list_rows(sql, reach, now, where, most, **more)
    return [pk for (pk,) in rows]


def _list_rows(
    sql: str, reach: QueueReach, now: datetime, where: str, most: int, **more: Any
) -> list[Any]:
    source = search.build_decidable_sql(reach, where, str(MOST_READ))
    given = search.build_parameters(reach, QueueFilters(), now) | {
        "lately": RECENT_PERIOD,
        **more,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql.format(source=source, most=most), given)
        return list(cursor.fetchall())


def _list_asking_agents(reach: QueueReach, now: datetime) -> list[AskingAgent]:
    rows = _list_rows(_ASKING, reach, now, "TRUE", MOST_AGENTS)
    return [AskingAgent(*row) for row in rows]


def _list_colleagues(
    reach: QueueReach, here: Collection[int], now: datetime
) -> list[Colleague]:
    """List the colleagues, absent ones first: they are the ones to call."""
    roles = [Role.REVIEWER.value, Role.SUPERVISOR.value]
    deciders = Person.objects.filter(is_active=True, groups__name__in=roles)
    ids = list(deciders.values_list("pk", flat=True).distinct()[:MOST_PEOPLE])
    titles = dict(Queue.objects.filter(pk__in=reach.queues).values_list("pk", "title"))
    given, unclaimed = _count_assigned(ids), _list_unclaimed(reach, now)
    people = [
        _build_colleague(person, titles, here, given, unclaimed)
        for person in permissions.list_people_with_roles(ids)
        if person.pk != reach.person.pk and _can_decide_in(person, titles.keys())
    ]
    return sorted(people, key=lambda row: (row.here, row.given, str(row.person)))


def list_present_people(now: datetime) -> set[int]:
    """The ids of those who are on duty: they hold a request now, or decided one in the
    last half hour. Pages that say so say by what (`DUTY_RULE`)."""
    holding = Hold.objects.filter(holder__isnull=False, until__gt=now)
    newest = Decision.objects.order_by("-pk").values_list("reviewer", "at")[:MOST_READ]
    deciding = {who for who, at in newest if at > now - RECENT_PERIOD}
    return deciding | set(holding.values_list("holder", flat=True))


def _count_assigned(ids: list[int]) -> dict[int, int]:
    waiting = ApprovalRequest.objects.filter(
        status=RequestStatus.PENDING, assignee__in=ids
    )
    return dict(waiting.values_list("assignee").annotate(n=Count("pk")).order_by())


class _Unclaimed(NamedTuple):
    """What decides who may get a request that nobody holds and nobody is assigned."""

    queue: int
    supervisors_only: bool
    barred: list[str]
    closed_to: list[str]


def _list_unclaimed(reach: QueueReach, now: datetime) -> list[_Unclaimed]:
    held = Hold.objects.filter(request=OuterRef("pk"), until__gt=now)
    waiting = ApprovalRequest.objects.filter(
        ~Exists(held),
        status=RequestStatus.PENDING,
        expires_at__gt=now,
        assignee__isnull=True,
        queue__in=reach.queues,
    )
    columns = waiting.values_list("queue", "supervisors_only", "barred", "closed_to")
    return [_Unclaimed(*row) for row in columns[:MOST_READ]]


def _count_free(person: Person, unclaimed: Iterable[_Unclaimed]) -> int:
    """How many of these one press assigns to the person."""
    queues, who = permissions.queues_of(person), person.public_id
    supervises = permissions.find_deciding_role(person) is Role.SUPERVISOR
    free = sum(
        row.queue in queues
        and (supervises or not row.supervisors_only)
        and who not in (*row.barred, *row.closed_to)
        for row in unclaimed
    )
    return min(free, MAX_ASSIGNED)


def _build_colleague(
    person: Person,
    titles: dict[int, str],
    here: Collection[int],
    given: dict[int, int],
    unclaimed: Iterable[_Unclaimed],
) -> Colleague:
    queues = permissions.queues_of(person)
    return Colleague(
        person=person,
        role=(permissions.find_deciding_role(person) or Role.REVIEWER).value,
        queues=sorted(title for pk, title in titles.items() if pk in queues),
        here=person.pk in here,
        given=given.get(person.pk, 0),
        free=_count_free(person, unclaimed),
    )

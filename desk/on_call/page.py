"""The on-call page: the rota of each queue, and the drills."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from journal import canonical
from journal.errors import NotPermitted
from notifications.on_call import drills, duty
from notifications.on_call import shifts as planning
from policies.models import Person, Queue
from reviews import permissions
from reviews.models import NotificationDrill, OnCallShift
from reviews.roles import Permission

from .results import DrillResult, build_results

MOST_SHIFTS = 200
MOST_DRILLS = 20


@dataclass(frozen=True, slots=True)
class ShiftLine:
    """One shift of the rota that is not over; `now`: it has begun."""

    shift: OnCallShift
    now: bool
    may_end: bool
    shown: str  # what the form sends back


@dataclass(frozen=True, slots=True)
class QueueRota:
    """Who is on call for one queue now. `planned`: by the rota, and not by the people's
    own preference."""

    title: str
    on_call: Sequence[str]
    planned: bool


@dataclass(frozen=True, slots=True)
class OnCallPage:
    """The whole page. `plans`: the ids of the queues that the reader plans for, and
    `people`: of those who decide in them. `shown`: what the form of a new shift sends
    back about each of these queues, by name."""

    rotas: Sequence[QueueRota]
    shifts: Sequence[ShiftLine]
    drills: Sequence[DrillResult]
    plans: Sequence[int]
    people: Sequence[int]
    shown: Sequence[tuple[str, str]]
    kept_days: int


def build_on_call_page(person: Person, now: datetime) -> OnCallPage:
    """Build the page of the queues that the reader decides in, or of all for people who
    see everything. Raises NotPermitted for others."""
    queues = _list_queues(person)
    plans = [
        queue.pk
        for queue in queues
        if permissions.has_permission(person, Permission.PLAN_ON_CALL)
        and queue.pk in permissions.queues_of(person)
    ]
    deciders = {
        queue.pk: permissions.list_deciders(queue.pk, roles=drills.ASKED_ROLES)
        for queue in queues
    }
    return OnCallPage(
        rotas=[_build_rota(queue, deciders[queue.pk], now) for queue in queues],
        shifts=_list_shifts(queues, plans, now),
        drills=_list_drills(queues, now),
        plans=plans,
        people=sorted({person.pk for pk in plans for person in deciders[pk]}),
        shown=[
            (queue.name, canonical.format_shown(planning.build_shown_rota(queue, now)))
            for queue in queues
            if queue.pk in plans
        ],
        kept_days=settings.COUNTERSEAL.keep_notices_days,
    )


def _list_queues(person: Person) -> list[Queue]:
    queues = Queue.objects.order_by("title")
    if permissions.has_permission(person, Permission.SEE_ALL):
        return list(queues)
    if permissions.find_deciding_role(person) is None:
        raise NotPermitted("Only people who decide requests see who is on call.")
    return list(queues.filter(pk__in=permissions.queues_of(person)))


def _build_rota(queue: Queue, people: Sequence[Person], now: datetime) -> QueueRota:
    planned = duty.select_planned(queue.pk, people, now)
    on_call = planned or duty.select_willing(people)
    return QueueRota(
        title=queue.title,
        on_call=sorted(str(person) for person in people if person.pk in on_call),
        planned=bool(planned),
    )


def _list_shifts(
    queues: Sequence[Queue], plans: Collection[int], now: datetime
) -> list[ShiftLine]:
    rows = OnCallShift.objects.filter(queue__in=queues, ends_at__gt=now)
    shifts = rows.select_related("person", "queue").order_by("begins_at", "pk")
    return [
        ShiftLine(
            shift=shift,
            now=shift.begins_at <= now,
            may_end=shift.queue_id in plans,
            shown=canonical.format_shown(planning.build_shown_shift(shift, now)),
        )
        for shift in shifts[:MOST_SHIFTS]
    ]


def _list_drills(queues: Sequence[Queue], now: datetime) -> list[DrillResult]:
    since = now - timedelta(days=settings.COUNTERSEAL.keep_notices_days)
    rows = NotificationDrill.objects.filter(queue__in=queues, started_at__gt=since)
    newest = rows.select_related("queue").order_by("-started_at")[:MOST_DRILLS]
    return build_results(list(newest), now)

"""Who is told of what, and when: the one door for mail.

Each message is a row, planned once for one person, by what they chose. What is due goes
at once; what is to wait, waits in the outbox (`delivery` sends both).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from django.db import transaction
from django.db.models import QuerySet

from journal import clock, outbox
from policies.choices import Risk, Role
from policies.models import Person
from reviews import permissions
from reviews.choices import AlarmStatus
from reviews.models import Alarm, ApprovalRequest, Execution, Notice
from reviews.people import preferences

from . import delivery, email, schedule
from .schedule import Due

SUPERVISORS = frozenset({Role.SUPERVISOR})


@dataclass(frozen=True, slots=True)
class Plan:
    """One person's message, and when it goes."""

    person: Person
    due: Due
    must: bool


def tell(
    request: ApprovalRequest,
    kind: str,
    *,
    roles: Collection[Role],
    only: str | None = None,
    occasion: str = "",
) -> int:
    """Tell those who may act on it, or `only` one of them by public id, each as they
    chose; how many mails were sent now.

    Safe to call again: who has been told is not told twice, unless the `occasion` is
    another one.
    """
    people = [
        person
        for person in permissions.deciders(request.queue_id, roles=roles)
        if not request.proposal.bars(person.public_id)
        and only in {None, person.public_id}
    ]
    about = {"request": request, "version": request.version, "occasion": occasion}
    return _tell(people, kind, request.risk, about)


def tell_of(execution: Execution, kind: str) -> int:
    """Tell the supervisors whom it concerns about an effect that ran, may have run or
    does not run any more, each as they chose; how many mails were sent now."""
    risk = execution.grant.revision.risk
    people = permissions.deciders(delivery.queue_of(execution, kind), roles=SUPERVISORS)
    return _tell(people, kind, risk, {"execution": execution})


def tell_alarm(alarm: Alarm) -> int:
    """Tell the supervisors of its queue, each as they chose, once however often it is
    seen; how many mails were sent now. Once it is closed nobody new is told, and what
    was planned before is let go."""
    closed = alarm.status == AlarmStatus.CLOSED
    risk = alarm.proposal.current.risk if alarm.proposal else Risk.CRITICAL
    people = [] if closed else permissions.deciders(alarm.queue_id, roles=SUPERVISORS)
    return _tell(people, "alarm", risk, {"alarm": alarm, "occasion": str(alarm.pk)})


def tell_incident(incident: str, *, person: str, kind: str) -> None:
    """Tell one supervisor that deadlines stand still, or run again: at once, whatever
    they chose, for all that waits is concerned."""
    email.incident(incident, person=person, kind=kind)


def _tell(
    people: Sequence[Person], kind: str, risk: str, about: Mapping[str, Any]
) -> int:
    now = clock.now()
    plan(about=about, kind=kind, plans=_plans(people, kind, risk, now), now=now)
    return _each(_due(about, kind, now), {one.pk: one for one in people})


def _due(about: Mapping[str, Any], kind: str, now: datetime) -> QuerySet[Notice]:
    """Those of an earlier version too: whoever planned them may have died before they
    went, and no promise but this one leads to them."""
    same = {name: what for name, what in about.items() if name != "version"}
    waiting = Notice.objects.filter(
        **same, kind=kind, digest=False, due_at__lte=now, sent_at=None, let_go=""
    )
    # In no order: a few whose mails hang would keep the same others from theirs.
    return waiting.select_related("person__preferences").order_by("?")


def _each(notices: Iterable[Notice], known: Mapping[int, Person]) -> int:
    """One that cannot be sent does not keep the others from theirs. Whose roles are
    known is not asked for them again."""
    sent, failed = 0, None
    for notice in notices:
        notice.person = known.get(notice.person_id, notice.person)
        try:
            sent += delivery.deliver(notice)
        except SoftTimeLimitExceeded:
            raise  # or the worker is killed, and whoever comes next waits for nothing
        except Exception as error:  # whatever a mail server answers
            failed = error
    if failed is not None:
        raise failed  # the outbox asks again, for those who are left
    return sent


def _plans(people: Sequence[Person], kind: str, risk: str, now: datetime) -> list[Plan]:
    found = []
    for person in people:
        must = schedule.must(kind, permissions.deciding_role(person))
        said = preferences.of(person).notifications
        due = schedule.due(said, kind, risk, must=must, now=now)
        if due is not None:
            found.append(Plan(person, due, must))
    return _somebody(_in_turn(found, now), now)


def _in_turn(plans: Sequence[Plan], now: datetime) -> list[Plan]:
    """Who has had their mails of this hour gets it with what is gathered: taken up now
    it would only be put off."""
    at_once = [one.person for one in plans if not one.must and one.due.at <= now]
    full = delivery.full_until(at_once)
    return [
        replace(one, due=Due(full[one.person.pk], digest=True))
        if one.person.pk in full
        else one
        for one in plans
    ]


def _somebody(plans: list[Plan], now: datetime) -> list[Plan]:
    """When all who must hear of it would sleep, it wakes all of them."""
    bound = [plan for plan in plans if plan.must]
    if not bound or any(plan.due.at <= now for plan in bound):
        return plans
    others = [plan for plan in plans if not plan.must]
    return [*others, *(Plan(plan.person, Due(now), True) for plan in bound)]


@transaction.atomic(durable=True)
def plan(
    *, about: Mapping[str, Any], kind: str, plans: Iterable[Plan], now: datetime
) -> None:
    """Write down who is to be told and was not yet, and promise what is not due yet;
    as many statements for many as for one, but for what waits by itself."""
    planned = Notice.objects.filter(**about, kind=kind)
    told = set(planned.values_list("person", flat=True))
    new = [one for one in plans if one.person.pk not in told]
    Notice.objects.bulk_create(
        [_notice(one, about, kind, now) for one in new],
        ignore_conflicts=True,  # somebody plans the same at this moment
    )
    later = [one.person.pk for one in new if one.due.at > now]
    if later:
        mine = planned.filter(person__in=later, due_at__gt=now)
        delivery.promise(mine.select_related("person"))


def _notice(plan: Plan, about: Mapping[str, Any], kind: str, now: datetime) -> Notice:
    when = {"at": now, "due_at": plan.due.at, "digest": plan.due.digest}
    return Notice(person=plan.person, kind=kind, **about, **when)


@transaction.atomic(durable=True)
def ask_test(*, person: Person) -> None:
    """Promise a message of no content, to see whether one arrives."""
    outbox.publish("notice.test", person.public_id)

"""Plan who is notified of what, and when. All mail to people starts here.

Each notice is a row, planned once for one person by their preferences. Due notices are
sent at once; delayed ones wait in the outbox. `delivery` sends both.
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

from . import delivery, email
from .delivery import SendTime

SUPERVISORS = frozenset({Role.SUPERVISOR})


@dataclass(frozen=True, slots=True)
class NoticePlan:
    """One person's notice, and when it is sent."""

    person: Person
    due: SendTime
    must: bool


def notify_deciders(
    request: ApprovalRequest,
    kind: str,
    *,
    roles: Collection[Role],
    only: str | None = None,
    occasion: str = "",
) -> int:
    """Notify the people who may decide a request, or `only` one of them by public id,
    each by their preferences. Returns how many mails were sent now.

    Safe to repeat: nobody is notified twice of the same version and kind, unless the
    `occasion` differs.
    """
    people = [
        person
        for person in permissions.list_deciders(request.queue_id, roles=roles)
        if not request.proposal.bars(person.public_id)
        and only in {None, person.public_id}
    ]
    about = {"request": request, "version": request.version, "occasion": occasion}
    return _notify_people(people, kind, request.risk, about)


def notify_of_execution(execution: Execution, kind: str) -> int:
    """Notify the supervisors concerned about an effect that ran, may have run or no
    longer runs, each by their preferences. Returns how many mails were sent now."""
    risk = execution.grant.revision.risk
    people = permissions.list_deciders(
        delivery.find_concerned_queue(execution, kind), roles=SUPERVISORS
    )
    return _notify_people(people, kind, risk, {"execution": execution})


def notify_of_alarm(alarm: Alarm) -> int:
    """Notify the supervisors of an alarm's queue, each by their preferences and only
    once an alarm. Returns how many mails were sent now. After the alarm is closed,
    nobody new is notified, and earlier notices are dropped."""
    closed = alarm.status == AlarmStatus.CLOSED
    risk = alarm.proposal.current.risk if alarm.proposal else Risk.CRITICAL
    people = (
        [] if closed else permissions.list_deciders(alarm.queue_id, roles=SUPERVISORS)
    )
    return _notify_people(
        people, "alarm", risk, {"alarm": alarm, "occasion": str(alarm.pk)}
    )


def notify_of_incident(incident: str, *, person: str, kind: str) -> None:
    """Notify one supervisor that deadlines are frozen, or run again. The mail goes at
    once whatever their preferences, because it concerns all open requests."""
    email.send_incident_mail(incident, person=person, kind=kind)


def _notify_people(
    people: Sequence[Person], kind: str, risk: str, about: Mapping[str, Any]
) -> int:
    now = clock.now()
    plan_notices(
        about=about, kind=kind, plans=_build_plans(people, kind, risk, now), now=now
    )
    return _deliver_each(_select_due(about, kind, now), {one.pk: one for one in people})


def _select_due(about: Mapping[str, Any], kind: str, now: datetime) -> QuerySet[Notice]:
    """Due notices, including those of earlier versions: the process that planned them
    may have died before sending, and no other message leads to them."""
    same = {name: what for name, what in about.items() if name != "version"}
    waiting = Notice.objects.filter(
        **same, kind=kind, digest=False, due_at__lte=now, sent_at=None, let_go=""
    )
    # In random order: otherwise a few mails that hang would always block the same ones.
    return waiting.select_related("person__preferences").order_by("?")


def _deliver_each(notices: Iterable[Notice], known: Mapping[int, Person]) -> int:
    """Deliver the notices; a failed mail does not keep back the others. `known` people
    have their roles already loaded. Raises the last error."""
    sent, failed = 0, None
    for notice in notices:
        notice.person = known.get(notice.person_id, notice.person)
        try:
            sent += delivery.deliver_notice(notice)
        except SoftTimeLimitExceeded:
            raise  # else the worker is killed at the hard limit
        except Exception as error:  # any error of a mail server
            failed = error
    if failed is not None:
        raise failed  # so that the outbox repeats the task for the remaining notices
    return sent


def _build_plans(
    people: Sequence[Person], kind: str, risk: str, now: datetime
) -> list[NoticePlan]:
    found = []
    for person in people:
        must = delivery.is_mandatory(kind, permissions.find_deciding_role(person))
        said = preferences.load_preferences(person).notifications
        due = delivery.compute_send_time(said, kind, risk, must=must, now=now)
        if due is not None:
            found.append(NoticePlan(person, due, must))
    return _wake_if_all_quiet(_delay_full_inboxes(found, now), now)


def _delay_full_inboxes(plans: Sequence[NoticePlan], now: datetime) -> list[NoticePlan]:
    """Move a due notice to the next digest for a person who has had their mails of this
    hour; delivery would only postpone it."""
    at_once = [one.person for one in plans if not one.must and one.due.at <= now]
    full = delivery.compute_full_until(at_once)
    return [
        replace(one, due=SendTime(full[one.person.pk], digest=True))
        if one.person.pk in full
        else one
        for one in plans
    ]


def _wake_if_all_quiet(plans: list[NoticePlan], now: datetime) -> list[NoticePlan]:
    """If quiet hours would delay the notice for everybody who must get it, send it to
    all of them now."""
    bound = [plan for plan in plans if plan.must]
    if not bound or any(plan.due.at <= now for plan in bound):
        return plans
    others = [plan for plan in plans if not plan.must]
    return [*others, *(NoticePlan(plan.person, SendTime(now), True) for plan in bound)]


@transaction.atomic(durable=True)
def plan_notices(
    *, about: Mapping[str, Any], kind: str, plans: Iterable[NoticePlan], now: datetime
) -> None:
    """Create the notices for people who do not have one yet, and publish outbox
    messages for those that are not due. The number of statements does not grow with
    the people, except for notices delayed one by one."""
    planned = Notice.objects.filter(**about, kind=kind)
    told = set(planned.values_list("person", flat=True))
    new = [one for one in plans if one.person.pk not in told]
    Notice.objects.bulk_create(
        [_build_notice(one, about, kind, now) for one in new],
        ignore_conflicts=True,  # another process may plan the same now
    )
    later = [one.person.pk for one in new if one.due.at > now]
    if later:
        mine = planned.filter(person__in=later, due_at__gt=now)
        delivery.enqueue_notices(mine.select_related("person"))


def _build_notice(
    plan: NoticePlan, about: Mapping[str, Any], kind: str, now: datetime
) -> Notice:
    when = {"at": now, "due_at": plan.due.at, "digest": plan.due.digest}
    return Notice(person=plan.person, kind=kind, **about, **when)


@transaction.atomic(durable=True)
def enqueue_test_notice(*, person: Person) -> None:
    """Publish an outbox message that sends this person a test mail."""
    outbox.publish("notice.test", person.public_id)

"""Plan who is notified of what, when and on which channels. All messages to people
start here.

Each notice is a row, planned once for one person and channel by the person's
preferences. Due notices are sent at once; delayed ones wait in the outbox. `delivery`
sends both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from django.db.models import QuerySet

from journal import clock, outbox
from journal.models import OutboxMessage
from journal.operations import operation
from policies.choices import Risk, Role
from policies.documents import Place
from policies.models import Person
from reviews import permissions
from reviews.choices import AlarmStatus, QuestionStatus
from reviews.models import (
    Alarm,
    ApprovalRequest,
    Execution,
    Notice,
    NotificationDrill,
    Proposal,
    Question,
)
from reviews.people import preferences
from reviews.questions import addressees

from . import delivery, send_times
from .channels import attempts, email, routing
from .events import EVENTS, Audience
from .on_call import drills, duty
from .send_times import SendTime

DECIDING_ROLES = (Role.REVIEWER, Role.SUPERVISOR)
SUPERVISING_ROLES = (Role.SUPERVISOR,)
# Kinds that concern one person only, so that no place is told.
PERSONAL_KINDS = frozenset(
    event.kind
    for event in EVENTS.values()
    if event.audience in {Audience.ASSIGNEE, Audience.NAMED}
)


@dataclass(frozen=True, slots=True)
class NoticeAudience:
    """The people to notify, and the risk and subject of their notices."""

    people: Sequence[Person]
    risk: str
    about: Mapping[str, Any]  # the fields of `Notice` that hold the subject


@dataclass(frozen=True, slots=True)
class NoticePlan:
    """A notice to one person or, without a person, to a place; and when it is sent."""

    person: Person | None
    due: SendTime
    must: bool
    channel: str
    target: str = ""


def notify_of_event(message: OutboxMessage) -> None:
    """Notify the people whom an outbox message's event concerns. Safe to repeat. Raises
    `KeyError` for a topic that is not in `EVENTS`."""
    event = EVENTS[message.topic]
    if event.audience is Audience.INCIDENT:
        # The mail goes at once whatever the reader's preferences, because an incident
        # concerns all open requests.
        email.send_incident_mail(message.subject, **message.facts)
    elif event.audience is Audience.LINKED:
        email.send_link_mail(message.subject)
    elif audience := find_audience(message):
        notify_people(audience, event.kind)


def find_audience(message: OutboxMessage) -> NoticeAudience | None:
    """The people whom an event concerns, of those events that become notices."""
    finder = _FINDERS.get(EVENTS[message.topic].audience)
    return finder(message) if finder else None


def notify_people(audience: NoticeAudience, kind: str) -> int:
    """Notify each person of the audience by their preferences, and the places that the
    policy names, except of a canary, which others would not find. Returns how many
    messages were sent now. Safe to repeat: nobody gets two notices of one kind and
    subject on one channel."""
    due = plan_for_audience(audience, kind)
    known = {person.pk: person for person in audience.people}
    return _deliver_each(due, known)


def plan_for_audience(audience: NoticeAudience, kind: str) -> QuerySet[Notice]:
    """Plan the notices of `notify_people`, and return those that are due."""
    now, about = clock.now(), audience.about
    places = routing.route_notice(about, kind)
    plans = _build_plans(audience, places, kind, now)
    if not _is_personal(about, kind) and not _is_canary(about):
        plans += [
            NoticePlan(None, SendTime(now), must=False, channel=channel, target=target)
            for channel, target in routing.select_shared_places(about, kind, places)
        ]
    plan_notices(about=about, kind=kind, plans=plans, now=now)
    return _select_due(about, kind, now)


def _is_personal(about: Mapping[str, Any], kind: str) -> bool:
    """Whether a notice concerns one person only."""
    question: Question | None = about.get("question")
    asks_person = question is not None and question.person_id is not None
    return asks_person or kind in PERSONAL_KINDS


def _is_canary(about: Mapping[str, Any]) -> bool:
    return "request" in about and about["request"].canary


def select_deciders(
    request: ApprovalRequest,
    *,
    roles: Collection[Role],
    only: str | None = None,
    occasion: str = "",
) -> NoticeAudience:
    """Select the people who may decide a request, or `only` one of them by public id;
    of a canary, its reviewer.

    Nobody is notified twice of the same version and kind, unless the `occasion`
    differs.
    """
    people = [
        person
        for person in permissions.list_deciders(request.queue_id, roles=roles)
        if not request.proposal.bars(person.public_id)
        and only in {None, person.public_id}
        and request.canary_for in {"", person.public_id}
    ]
    about = {"request": request, "version": request.version, "occasion": occasion}
    return NoticeAudience(people, request.risk, about)


def _load_request(message: OutboxMessage) -> ApprovalRequest:
    return ApprovalRequest.with_canaries.get_with_proposal(message.subject)


def _find_deciders(message: OutboxMessage) -> NoticeAudience:
    return select_deciders(_load_request(message), roles=DECIDING_ROLES)


def _find_supervisors(message: OutboxMessage) -> NoticeAudience:
    return select_deciders(_load_request(message), roles=SUPERVISING_ROLES)


def _find_assignee(message: OutboxMessage) -> NoticeAudience | None:
    request = _load_request(message)
    if request.assignee is None:
        return None
    return _select_one(request, request.assignee.public_id, message)


def _find_named(message: OutboxMessage) -> NoticeAudience:
    return _select_one(_load_request(message), str(message.facts["person"]), message)


def _select_one(
    request: ApprovalRequest, person: str, message: OutboxMessage
) -> NoticeAudience:
    """Select one person, who is notified once for each outbox message."""
    return select_deciders(
        request, roles=DECIDING_ROLES, only=person, occasion=str(message.pk)
    )


def _find_of_execution(message: OutboxMessage) -> NoticeAudience:
    return _select_supervisors(Execution.objects.get(pk=message.subject), message)


def _find_of_announcement(message: OutboxMessage) -> NoticeAudience:
    proposal = Proposal.objects.get(pk=message.subject)
    return _select_supervisors(proposal.executions.get(), message)


def _select_supervisors(execution: Execution, message: OutboxMessage) -> NoticeAudience:
    risk = execution.grant.revision.risk
    kind = EVENTS[message.topic].kind
    queue = delivery.find_concerned_queue(execution, kind)
    people = permissions.list_deciders(queue, roles=SUPERVISING_ROLES)
    return NoticeAudience(people, risk, {"execution": execution})


def _find_of_alarm(message: OutboxMessage) -> NoticeAudience:
    """Supervisors of the alarm's queue, each notified once an alarm. After the alarm is
    closed, nobody new is notified, and earlier notices are dropped."""
    alarm = Alarm.objects.get(pk=message.subject)
    people: Sequence[Person] = []
    if alarm.status != AlarmStatus.CLOSED:
        people = permissions.list_deciders(alarm.queue_id, roles=SUPERVISING_ROLES)
    risk = alarm.proposal.current.risk if alarm.proposal else Risk.CRITICAL
    return NoticeAudience(people, risk, {"alarm": alarm, "occasion": str(alarm.pk)})


def _find_of_drill(message: OutboxMessage) -> NoticeAudience | None:
    """The people whom the drill asks. Nobody new is asked once it is over."""
    drill = NotificationDrill.objects.select_related("queue").get(pk=message.subject)
    if drill.ends_at <= clock.now():
        return None
    deciders = permissions.list_deciders(drill.queue_id, roles=drills.ASKED_ROLES)
    people = [person for person in deciders if person.public_id in drill.people]
    about = {"drill": drill, "occasion": str(drill.pk)}
    return NoticeAudience(people, drill.risk, about)


def _find_of_question(message: OutboxMessage) -> NoticeAudience | None:
    """The people who may answer. Nobody new is asked once it has ended."""
    question = Question.objects.select_related("queue", "person").get(
        pk=message.subject
    )
    if question.status != QuestionStatus.OPEN or question.expires_at <= clock.now():
        return None
    about = {"question": question, "occasion": question.pk}
    return NoticeAudience(addressees.list_addressees(question), Risk.LOW, about)


_FINDERS: Mapping[Audience, Callable[[OutboxMessage], NoticeAudience | None]] = {
    Audience.DECIDERS: _find_deciders,
    Audience.SUPERVISORS: _find_supervisors,
    Audience.ASSIGNEE: _find_assignee,
    Audience.NAMED: _find_named,
    Audience.EXECUTION: _find_of_execution,
    Audience.ANNOUNCEMENT: _find_of_announcement,
    Audience.ALARM: _find_of_alarm,
    Audience.DRILL: _find_of_drill,
    Audience.QUESTION: _find_of_question,
}


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
        if notice.person_id is not None:
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
    audience: NoticeAudience, places: Sequence[Place], kind: str, now: datetime
) -> list[NoticePlan]:
    plans, on_call = [], _select_on_call(audience, kind, now)
    for person, channel in routing.choose_channels(audience.people, places):
        must = send_times.is_mandatory(kind, permissions.find_deciding_role(person))
        prefs = preferences.load_preferences(person).notifications
        due = send_times.compute_send_time(
            prefs,
            kind,
            audience.risk,
            must=must,
            now=now,
            channel=channel,
            on_call=person.pk in on_call,
        )
        if due is not None:
            plans.append(NoticePlan(person, due, must, channel))
    return _wake_if_all_quiet(_delay_full_inboxes(plans, now), now)


def _select_on_call(audience: NoticeAudience, kind: str, now: datetime) -> set[int]:
    """Those of the audience who have a shift now, for the kinds that find them in
    their quiet hours, too."""
    request: ApprovalRequest | None = audience.about.get("request")
    if request is None or kind not in send_times.MANDATORY_KINDS:
        return set()
    return duty.list_planned_ids(request.queue_id, now)


def _delay_full_inboxes(plans: Sequence[NoticePlan], now: datetime) -> list[NoticePlan]:
    """Move a due notice to the next digest for a person who has had their messages of
    this hour on the channel; delivery would only postpone it."""
    at_once = defaultdict(list)
    for plan in plans:
        if plan.person is not None and not plan.must and plan.due.at <= now:
            at_once[plan.channel].append(plan.person)
    full = {
        (pk, channel): until
        for channel, people in at_once.items()
        for pk, until in send_times.compute_full_until(people, channel).items()
    }
    return [
        replace(plan, due=SendTime(until, digest=True))
        if plan.person is not None
        and not plan.must
        and (until := full.get((plan.person.pk, plan.channel)))
        else plan
        for plan in plans
    ]


def _wake_if_all_quiet(plans: list[NoticePlan], now: datetime) -> list[NoticePlan]:
    """If quiet hours would delay the notice for everybody who must get it, send it to
    all of them now."""
    bound = [plan for plan in plans if plan.must]
    if not bound or any(plan.due.at <= now for plan in bound):
        return plans
    others = [plan for plan in plans if not plan.must]
    return [*others, *(replace(plan, due=SendTime(now)) for plan in bound)]


@operation(writes="Notice", after="messages, each when its reader chose")
def plan_notices(
    *, about: Mapping[str, Any], kind: str, plans: Iterable[NoticePlan], now: datetime
) -> None:
    """Create the notices that do not exist yet, and publish outbox messages for those
    that are not due. The number of statements does not grow with the people, except for
    notices delayed one by one."""
    planned = Notice.objects.filter(**about, kind=kind)
    notified = set(planned.values_list("person", "channel", "target"))
    new = [plan for plan in plans if _get_reader(plan) not in notified]
    Notice.objects.bulk_create(
        [_build_notice(plan, about, kind, now) for plan in new],
        ignore_conflicts=True,  # another process may plan the same now
    )
    later = [plan.person for plan in new if plan.due.at > now]
    if later:
        delayed = planned.filter(person__in=later, due_at__gt=now)
        attempts.enqueue_notices(delayed.select_related("person"))


def _get_reader(plan: NoticePlan) -> tuple[int | None, str, str]:
    person = None if plan.person is None else plan.person.pk
    return person, plan.channel, plan.target


def _build_notice(
    plan: NoticePlan, about: Mapping[str, Any], kind: str, now: datetime
) -> Notice:
    when = {"at": now, "due_at": plan.due.at, "digest": plan.due.digest}
    where = {"person": plan.person, "channel": plan.channel, "target": plan.target}
    return Notice(kind=kind, **where, **about, **when)


@operation(after="a test message")
def enqueue_test_notice(*, person: Person, channel: str = "email") -> None:
    """Publish an outbox message that sends this person a test message."""
    outbox.publish("notice.test", person.public_id, channel=channel)

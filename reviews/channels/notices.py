"""Who is told of a request, when, and only while it still concerns them.

Each message is a row, planned once for one person. What is due goes at once; what is
to wait, waits in the outbox, and is looked at again when its time has come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Min
from django.db.models.functions import Now

from journal import clock, outbox
from policies.choices import Role
from policies.models import Person
from reviews import permissions, preferences
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, Lease, Notice

from . import email, timing
from .timing import Due

HOUR = timedelta(hours=1)
WHAT = {
    "opened": "Waits for you",
    "escalated": "Escalated to you",
    "returned": "Returned with guidance",
    "due_soon": "Expires soon",
    "settled": "Settled",
}
# Of these there is nothing to say any more once it is decided.
WAITING = frozenset({"opened", "escalated", "returned", "due_soon"})


@dataclass(frozen=True, slots=True)
class Plan:
    """One person's message, and when it goes."""

    person: Person
    due: Due
    must: bool


def tell(request: ApprovalRequest, kind: str, *, roles: Iterable[Role]) -> int:
    """Tell those who may act on it, each as they chose; how many mails were sent now.

    Safe to call again: who has been told is not told twice.
    """
    now = clock.now()
    barred = set(request.proposal.barred)
    people = [
        person
        for person in email.deciders(request.queue, roles=roles)
        if person.public_id not in barred
    ]
    plan(request=request, kind=kind, plans=_plans(people, request, kind, now), now=now)
    due = Notice.objects.filter(
        request=request,
        version=request.version,
        kind=kind,
        digest=False,
        due_at__lte=now,
        sent_at__isnull=True,
        let_go="",
    ).select_related("person__preferences")
    return _each(due)


def _each(notices: Iterable[Notice]) -> int:
    """One that cannot be sent does not keep the others from theirs."""
    sent, failed = 0, None
    for notice in notices:
        try:
            sent += deliver(notice)
        except Exception as error:  # whatever a mail server answers
            failed = error
    if failed is not None:
        raise failed  # the outbox asks again, for those who are left
    return sent


def _plans(
    people: Iterable[Person], request: ApprovalRequest, kind: str, now: datetime
) -> list[Plan]:
    found = []
    for person in people:
        must = timing.must(kind, permissions.deciding_role(person))
        said = preferences.of(person).notifications
        due = timing.due(said, kind, request.risk, must=must, now=now)
        if due is not None:
            found.append(Plan(person, due, must))
    return _somebody(found, now)


def _somebody(plans: list[Plan], now: datetime) -> list[Plan]:
    """When all who must hear of it would sleep, it wakes all of them."""
    bound = [plan for plan in plans if plan.must]
    if not bound or any(plan.due.at <= now for plan in bound):
        return plans
    others = [plan for plan in plans if not plan.must]
    return [*others, *(Plan(plan.person, Due(now), True) for plan in bound)]


@transaction.atomic(durable=True)
def plan(
    *, request: ApprovalRequest, kind: str, plans: Iterable[Plan], now: datetime
) -> None:
    """Write down who is to be told, and promise what is not due yet."""
    for one in plans:
        notice, new = Notice.objects.get_or_create(
            person=one.person,
            request=request,
            version=request.version,
            kind=kind,
            defaults={"at": now, "due_at": one.due.at, "digest": one.due.digest},
        )
        if new and one.due.at > now:
            _promise(notice)


def _promise(notice: Notice) -> None:
    if notice.digest:
        who = notice.person.public_id
        outbox.publish_later("notice.digest", who, at=notice.due_at)
    else:
        outbox.publish_later("notice.due", str(notice.pk), at=notice.due_at)


def deliver(notice: Notice) -> bool:
    """Send one message, unless there is no reason any more; whether it was sent."""
    if notice.sent_at is not None or notice.let_go or notice.request is None:
        return False
    request, person = notice.request, notice.person
    if why := _let_go(notice, request):
        Notice.objects.filter(pk=notice.pk).update(let_go=why)
        return False
    if later := _too_many(notice, request):
        postpone(notice=notice, until=later)
        return False
    email.to(person, request, _what(notice.kind, request))
    Notice.objects.filter(pk=notice.pk).update(sent_at=Now())
    return True


def _what(kind: str, request: ApprovalRequest) -> str:
    settled = f", {request.status}" if kind == "settled" else ""
    return f"{WHAT[kind]}{settled}"


def _let_go(notice: Notice, request: ApprovalRequest) -> str:
    """Why this is nothing to this person any more, or empty."""
    if notice.kind not in WAITING:
        return ""
    waits = request.status == RequestStatus.PENDING and request.expires_at > clock.now()
    if not waits or request.version != notice.version:
        return "settled"
    if permissions.can_decide(notice.person, request, request.sealed):
        return "not_theirs"
    if timing.must(notice.kind, permissions.deciding_role(notice.person)):
        return ""
    said = preferences.of(notice.person).notifications
    late = said.mail(request.risk) == "unclaimed" and notice.kind == "opened"
    return "taken" if (said.once_taken or late) and _is_taken(notice, request) else ""


def _is_taken(notice: Notice, request: ApprovalRequest) -> bool:
    """Whether somebody else is at it just now."""
    held = Lease.objects.filter(request=request, until__gt=Now(), holder__isnull=False)
    return held.exclude(holder=notice.person).exists()


def _too_many(notice: Notice, request: ApprovalRequest) -> datetime | None:
    """When there is room again within this person's hour, or None."""
    if timing.must(notice.kind, permissions.deciding_role(notice.person)):
        return None
    since = clock.now() - HOUR
    recent = Notice.objects.filter(person=notice.person, sent_at__gt=since)
    if recent.count() < preferences.of(notice.person).notifications.per_hour:
        return None
    oldest: datetime = recent.aggregate(at=Min("sent_at"))["at"]
    return oldest + HOUR


@transaction.atomic(durable=True)
def postpone(*, notice: Notice, until: datetime) -> None:
    """Promise it for later."""
    Notice.objects.filter(pk=notice.pk).update(due_at=until)
    notice.due_at = until
    _promise(notice)


def digest(public_id: str) -> bool:
    """One mail with what was gathered for this person and still waits; whether there
    was anything."""
    person = Person.objects.select_related("preferences").get(public_id=public_id)
    gathered = list(
        Notice.objects.filter(
            person=person,
            digest=True,
            due_at__lte=clock.now(),
            sent_at__isnull=True,
            let_go="",
        )
        .select_related("request__proposal", "request__queue", "person")
        .order_by("request__expires_at")
    )
    waiting = [one for one in gathered if not _let_go(one, _about(one))]
    if waiting and person.is_active and person.email:
        email.digest(person, [_about(one) for one in waiting])
    sent = {one.pk for one in waiting}
    Notice.objects.filter(pk__in=sent).update(sent_at=Now())
    over = [one.pk for one in gathered if one.pk not in sent]
    Notice.objects.filter(pk__in=over).update(let_go="settled")
    return bool(waiting)


def _about(notice: Notice) -> ApprovalRequest:
    assert notice.request is not None
    return notice.request


@transaction.atomic(durable=True)
def ask_test(*, person: Person) -> None:
    """Promise a message of no content, to see whether one arrives."""
    outbox.publish("notice.test", person.public_id)

"""Sending what was planned, only while it still concerns its reader, and no more an
hour than they want."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Min
from django.db.models.functions import Now

from journal import clock, faults, outbox
from policies.choices import Role
from policies.models import Person
from reviews import permissions, preferences
from reviews.choices import AlarmStatus, ExecutionStatus, RequestStatus
from reviews.models import Alarm, ApprovalRequest, Execution, Lease, Notice

from . import email, timing

HOUR = timedelta(hours=1)
WHAT = {
    "opened": "Waits for you",
    "escalated": "Escalated to you",
    "returned": "Returned with guidance",
    "due_soon": "Expires soon",
    "assigned": "Given to you",
    "freed": "Free again",
    "offered": "Offered to you",
    "broken": "Your hold was ended",
    "handed_over": "Taken over from you",
    "revoked": "Asked again: an approval was revoked",
    "settled": "Settled",
    "ran": "Ran without asking",
    "unknown": "Nobody knows whether this ran",
    "cancelled": "Does not run: its approval was revoked",
    "alarm": "Alarm",
}
# Of these there is nothing to say any more once it is decided.
WAITING = frozenset(
    {"opened", "escalated", "returned", "due_soon", "assigned", "freed", "offered"}
    | {"broken", "handed_over", "revoked"}
)
# These are said because somebody else is at it.
WHILE_HELD = frozenset({"offered", "broken", "handed_over"})


def deliver(notice: Notice) -> bool:
    """Send one message, unless there is no reason any more; whether it was sent."""
    if notice.sent_at is not None or notice.let_go:
        return False
    if why := _let_go(notice):
        Notice.objects.filter(pk=notice.pk).update(let_go=why)
        return False
    if later := _too_many(notice):
        postpone(notice=notice, until=later)
        return False
    email.to(notice.person, _line(notice))
    faults.point("mail_taken", str(notice.pk))
    Notice.objects.filter(pk=notice.pk).update(sent_at=Now())
    return True


def _line(notice: Notice) -> email.Line:
    about = notice.request or notice.execution or notice.alarm
    assert about is not None  # the database says so
    ends = f", {about.status}" if notice.kind == "settled" else ""
    return email.Line(f"{WHAT[notice.kind]}{ends}", about, notice.kind in WAITING)


def _let_go(notice: Notice) -> str:
    """Why this is nothing to this person any more, or empty."""
    if not notice.person.is_active or not notice.person.email:
        return "not_theirs"
    if notice.execution is not None:
        return _of_effect(notice, notice.execution)
    if notice.alarm is not None:
        return _of_alarm(notice, notice.alarm)
    if notice.request is None or notice.kind not in WAITING:
        return ""
    return _of_question(notice, notice.request)


def _of_effect(notice: Notice, execution: Execution) -> str:
    tool = execution.grant.revision.tool
    supervises = permissions.deciding_role(notice.person) is Role.SUPERVISOR
    if tool is None or not supervises:
        return "not_theirs"
    if tool.queue_id not in permissions.queues_of(notice.person):
        return "not_theirs"
    known = execution.status != ExecutionStatus.UNKNOWN
    return "settled" if notice.kind == "unknown" and known else ""


def _of_alarm(notice: Notice, alarm: Alarm) -> str:
    if permissions.deciding_role(notice.person) is not Role.SUPERVISOR:
        return "not_theirs"
    if alarm.queue_id and alarm.queue_id not in permissions.queues_of(notice.person):
        return "not_theirs"
    return "settled" if alarm.status == AlarmStatus.CLOSED else ""


def _of_question(notice: Notice, request: ApprovalRequest) -> str:
    waits = request.status == RequestStatus.PENDING and request.expires_at > clock.now()
    if not waits or request.version != notice.version:
        return "settled"
    if permissions.can_decide(notice.person, request, request.sealed):
        return "not_theirs"
    if not _still_meant(notice, request):
        return "not_theirs"
    if timing.must(notice.kind, permissions.deciding_role(notice.person)):
        return ""
    said = preferences.of(notice.person).notifications
    late = said.mail(request.risk) == "unclaimed" and notice.kind == "opened"
    asks = (said.once_taken or late) and notice.kind not in WHILE_HELD
    return "taken" if asks and _is_taken(notice, request) else ""


def _still_meant(notice: Notice, request: ApprovalRequest) -> bool:
    """Whether what was given or offered to this person still is."""
    if notice.kind == "assigned":
        return request.assignee_id == notice.person_id
    if notice.kind != "offered":
        return True
    offers = Lease.objects.filter(request=request, until__gt=Now())
    return offers.filter(offered_to=notice.person).exists()


def _is_taken(notice: Notice, request: ApprovalRequest) -> bool:
    """Whether somebody else is at it just now."""
    held = Lease.objects.filter(request=request, until__gt=Now(), holder__isnull=False)
    return held.exclude(holder=notice.person).exists()


def _too_many(notice: Notice) -> datetime | None:
    """When there is room again within this person's hour, or None. A digest is one
    mail at an hour of their own choice, and does not count."""
    if timing.must(notice.kind, permissions.deciding_role(notice.person)):
        return None
    since = clock.now() - HOUR
    recent = Notice.objects.filter(
        person=notice.person, digest=False, sent_at__gt=since
    )
    if recent.count() < preferences.of(notice.person).notifications.per_hour:
        return None
    oldest: datetime = recent.aggregate(at=Min("sent_at"))["at"]
    return oldest + HOUR


@transaction.atomic(durable=True)
def postpone(*, notice: Notice, until: datetime) -> None:
    """Promise it for later."""
    Notice.objects.filter(pk=notice.pk).update(due_at=until)
    notice.due_at = until
    promise(notice)


def promise(notice: Notice) -> None:
    """Have it looked at again when it is due. Caller holds a transaction."""
    if notice.digest:
        who = notice.person.public_id
        outbox.publish_later("notice.digest", who, at=notice.due_at)
    else:
        outbox.publish_later("notice.due", str(notice.pk), at=notice.due_at)


def one(notice_id: str) -> bool:
    """Send what was to wait, now that its time has come; whether it was sent."""
    found = Notice.objects.select_related(
        "person__preferences", "request", "execution", "alarm"
    )
    notice = found.filter(pk=notice_id).first()
    return notice is not None and deliver(notice)


def digest(public_id: str) -> bool:
    """One mail with what was gathered for this person and still concerns them; whether
    there was anything."""
    person = Person.objects.select_related("preferences").get(public_id=public_id)
    gathered = _gathered(person)
    still = [one for one in gathered if not _let_go(one)]
    if still:
        email.digest(person, [_line(one) for one in _once_each(still)])
    sent = {one.pk for one in still}
    Notice.objects.filter(pk__in=sent).update(sent_at=Now())
    over = [one.pk for one in gathered if one.pk not in sent]
    Notice.objects.filter(pk__in=over).update(let_go="settled")
    return bool(still)


def _gathered(person: Person) -> list[Notice]:
    found = Notice.objects.filter(
        person=person,
        digest=True,
        due_at__lte=clock.now(),
        sent_at__isnull=True,
        let_go="",
    ).select_related(
        "request__proposal",
        "request__queue",
        "execution__grant__revision__tool",
        "alarm__proposal",
    )
    rows = list(found.order_by("request__expires_at", "pk"))
    for row in rows:
        row.person = person  # with what is known of them
    return rows


def _once_each(notices: Sequence[Notice]) -> list[Notice]:
    """Of several messages about one thing the last: it says how it is now."""
    newest = {(one.request_id, one.execution_id, one.alarm_id): one for one in notices}
    return list(newest.values())


def test(public_id: str) -> None:
    """What a person asked to be sent to see whether it arrives."""
    email.test(Person.objects.get(public_id=public_id))

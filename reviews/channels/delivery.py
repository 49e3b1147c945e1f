"""Sending what was planned, only while it still concerns its reader, and no more mails
an hour than they want."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, Min
from django.db.models.functions import Now

from journal import clock, failpoints, outbox
from policies.models import Person
from reviews import permissions
from reviews.models import Notice
from reviews.notifications import email, schedule
from reviews.people import preferences
from reviews.people.preferences import Notifications

from . import concern, lines

HOUR = timedelta(hours=1)


def deliver(notice: Notice) -> bool:
    """Send one message, unless there is no reason any more; whether it was sent."""
    if notice.sent_at is not None or notice.let_go or notice.digest:
        return False
    if why := concern.let_go(notice):
        Notice.objects.filter(pk=notice.pk).update(let_go=why)
        return False
    if later := _too_many(notice):
        postpone(notice=notice, until=later)
        return False
    email.to(notice.person, lines.line(notice))
    failpoints.point("mail_taken", str(notice.pk))
    Notice.objects.filter(pk=notice.pk).update(sent_at=Now())
    return True


def _too_many(notice: Notice) -> datetime | None:
    if schedule.must(notice.kind, permissions.deciding_role(notice.person)):
        return None
    return full_until([notice.person]).get(notice.person_id)


def full_until(people: Collection[Person]) -> dict[int, datetime]:
    """When there is room again within their hours, of those who have none; one query.
    What was gathered is one mail, and was sent in one moment."""
    recent = Notice.objects.filter(person__in=people, sent_at__gt=clock.now() - HOUR)
    mails = recent.values("person").annotate(
        n=Count("sent_at", distinct=True), first=Min("sent_at")
    )
    had = {one["person"]: one for one in mails}
    full = {}
    for person in people:
        said: Notifications = preferences.of(person).notifications
        mine = had.get(person.pk)
        if mine and mine["n"] >= said.per_hour:
            room = mine["first"] + HOUR
            full[person.pk] = schedule.quiet_until(said, room) or room
    return full


@transaction.atomic(durable=True)
def postpone(*, notice: Notice, until: datetime) -> None:
    """Gather it for when there is room: one mail then, whatever comes until then."""
    Notice.objects.filter(pk=notice.pk).update(due_at=until, digest=True)
    notice.due_at, notice.digest = until, True
    promise([notice])


def promise(notices: Iterable[Notice]) -> None:
    """Have them looked at again when they are due. Caller holds a transaction."""
    gathered = {}
    for notice in notices:
        if notice.digest:
            gathered[notice.person.public_id] = notice.due_at
        else:
            outbox.publish_later("notice.due", str(notice.pk), at=notice.due_at)
    outbox.publish_once("notice.digest", gathered)


def one(notice_id: str) -> bool:
    """Send what was to wait, now that its time has come; whether it was sent."""
    found = Notice.objects.select_related(
        "person__preferences", "request", "execution", "alarm"
    )
    notice = found.filter(pk=notice_id).first()
    return notice is not None and deliver(notice)


def test(public_id: str) -> None:
    """What a person asked to be sent to see whether it arrives."""
    email.test(Person.objects.get(public_id=public_id))

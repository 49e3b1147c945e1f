"""Send planned notices by mail.

A notice is sent only while it still concerns its reader, and within the number of mails
an hour that the reader set. Notices for later are gathered into one digest mail: for
the reader's time of day, the end of their quiet hours, or when they may get mail again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import Count, F, Min, Q, QuerySet
from django.db.models.functions import Now

from journal import clock, failpoints, outbox
from policies.choices import Role
from policies.models import Person
from reviews import locks, permissions
from reviews.choices import AlarmStatus, ExecutionStatus, RequestStatus
from reviews.models import Alarm, ApprovalRequest, Execution, Lease, Notice
from reviews.people import preferences
from reviews.people.preferences import NotificationPreferences

from . import email
from .events import NOTICE_TITLES, WAITING_KINDS

# Notices about another person's hold, so that hold is no reason to drop them.
HOLD_KINDS = frozenset({"offered", "broken", "handed_over"})


def build_mail_line(notice: Notice) -> email.MailLine:
    """Build the line that a mail prints for a notice."""
    about = notice.request or notice.execution or notice.alarm
    assert about is not None  # the database says so
    ends = f", {about.status}" if notice.kind == "settled" else ""
    return email.MailLine(
        f"{NOTICE_TITLES[notice.kind]}{ends}", about, notice.kind in WAITING_KINDS
    )


def find_drop_reason(notice: Notice) -> str:
    """Why the notice no longer concerns its reader, as a code; "" while it does."""
    if not notice.person.is_active or not notice.person.email:
        return "not_theirs"
    if notice.execution is not None:
        return _find_effect_drop_reason(notice, notice.execution)
    if notice.alarm is not None:
        return _find_alarm_drop_reason(notice, notice.alarm)
    if notice.request is None or notice.kind not in WAITING_KINDS:
        return ""
    return _find_request_drop_reason(notice, notice.request)


def find_concerned_queue(execution: Execution, kind: str) -> int:
    """The id of the queue that a notice about an execution concerns: for `ran`, the one
    to which it was announced; for `cancelled`, the queue of its request; else the
    tool's."""
    request: ApprovalRequest | None = getattr(execution.proposal, "request", None)
    if kind == "ran" and execution.announced_in_id is not None:
        return execution.announced_in_id
    if kind == "cancelled" and request is not None:
        return request.queue_id
    return execution.grant.revision.known_tool.queue_id


def _find_effect_drop_reason(notice: Notice, execution: Execution) -> str:
    if permissions.find_deciding_role(notice.person) is not Role.SUPERVISOR:
        return "not_theirs"
    theirs = permissions.queues_of(notice.person)
    if find_concerned_queue(execution, notice.kind) not in theirs:
        return "not_theirs"
    known = execution.status != ExecutionStatus.UNKNOWN
    return "settled" if notice.kind == "unknown" and known else ""


def _find_alarm_drop_reason(notice: Notice, alarm: Alarm) -> str:
    if permissions.find_deciding_role(notice.person) is not Role.SUPERVISOR:
        return "not_theirs"
    if alarm.queue_id and alarm.queue_id not in permissions.queues_of(notice.person):
        return "not_theirs"
    return "settled" if alarm.status == AlarmStatus.CLOSED else ""


def _find_request_drop_reason(notice: Notice, request: ApprovalRequest) -> str:
    waits = request.status == RequestStatus.PENDING and request.expires_at > clock.now()
    if not waits or request.version != notice.version:
        return "settled"
    if permissions.describe_why_cannot_decide(notice.person, request, request.sealed):
        return "not_theirs"
    if not _is_still_addressee(notice, request):
        return "not_theirs"
    if is_mandatory(notice.kind, permissions.find_deciding_role(notice.person)):
        return ""
    said = preferences.load_preferences(notice.person).notifications
    late = said.mail(request.risk) == "unclaimed" and notice.kind == "opened"
    asks = (said.once_taken or late) and notice.kind not in HOLD_KINDS
    return "taken" if asks and _is_held_by_other(notice, request) else ""


def _is_still_addressee(notice: Notice, request: ApprovalRequest) -> bool:
    """Whether the request is still assigned or offered to this person."""
    if notice.kind == "assigned":
        return request.assignee_id == notice.person_id
    if notice.kind != "offered":
        return True
    offers = Lease.objects.filter(request=request, until__gt=Now())
    return offers.filter(offered_to=notice.person).exists()


def _is_held_by_other(notice: Notice, request: ApprovalRequest) -> bool:
    """Whether another person holds the request now."""
    held = Lease.objects.filter(request=request, until__gt=Now(), holder__isnull=False)
    return held.exclude(holder=notice.person).exists()


# Lines of one digest mail, which states the number of the others.
MAX_MAIL_LINES = 100
# Rows of one statement. A busy hour may gather tens of thousands, and a task stopped at
# its time limit must find less to do at the next attempt.
UPDATE_CHUNK = 1000


def send_digest(public_id: str) -> bool:
    """Send one mail with the gathered notices that still concern this person. Returns
    whether there were any. Beyond `MAX_MAIL_LINES`, the mail only gives the number.
    Raises OperationalError when another worker holds the lock on mails to this person
    for too long."""
    person = Person.objects.select_related("preferences").get(public_id=public_id)
    with locks.lock_digest_mail(
        person.public_id
    ):  # else two workers could send the same mail
        return _send_gathered(person, clock.now())


def _send_gathered(person: Person, now: datetime) -> bool:
    gathered = _select_gathered(person, now)
    _drop_settled(person, gathered, now)
    # Fix the set now: notices that arrive from here on belong to the next mail.
    these = _list_keys(_sort_notices(gathered))
    first = list(_sort_notices(gathered.filter(pk__in=these[:MAX_MAIL_LINES])))
    rest = email.MailRemainder()
    if len(these) > MAX_MAIL_LINES:
        rest = _count_remainder(gathered.filter(pk__in=these), first)
    still = _filter_concerning(person, first)
    if still or rest.count:
        said = [build_mail_line(one) for one in _keep_newest_each(still)]
        email.send_digest_mail(person, said, rest)
    _update_in_chunks(gathered, these, sent_at=clock.now())
    return bool(still or rest.count)


def _select_gathered(person: Person, now: datetime) -> QuerySet[Notice]:
    return Notice.objects.filter(
        person=person, digest=True, due_at__lte=now, sent_at__isnull=True, let_go=""
    )


def _drop_settled(person: Person, gathered: QuerySet[Notice], now: datetime) -> None:
    """Drop the notices that concern nobody any more, by a few statements for all."""
    if not person.is_active or not person.email:
        _update_in_chunks(gathered, _list_keys(gathered), let_go="not_theirs")
        return
    asked = gathered.filter(kind__in=WAITING_KINDS, request__isnull=False)
    waits = Q(request__status=RequestStatus.PENDING, request__expires_at__gt=now)
    over = asked.exclude(waits, request__version=F("version"))
    _update_in_chunks(gathered, _list_keys(over), let_go="settled")


def _list_keys(rows: QuerySet[Notice]) -> list[int]:
    return list(rows.values_list("pk", flat=True))


def _update_in_chunks(
    gathered: QuerySet[Notice], keys: Sequence[int], **values: datetime | str
) -> None:
    """Mark these notices as sent or dropped, chunk by chunk. Each chunk is committed on
    its own."""
    for start in range(0, len(keys), UPDATE_CHUNK):
        gathered.filter(pk__in=keys[start : start + UPDATE_CHUNK]).update(**values)


def _sort_notices(gathered: QuerySet[Notice]) -> QuerySet[Notice]:
    """Sort notices that ask for a decision first, then by the nearest deadline."""
    related = gathered.select_related(
        "request__proposal",
        "request__queue",
        "execution__grant__revision__tool",
        "alarm__proposal",
    )
    waits = Q(kind__in=WAITING_KINDS)
    return related.annotate(waits=waits).order_by("-waits", "request__expires_at", "pk")


def _count_remainder(
    these: QuerySet[Notice], first: Sequence[Notice]
) -> email.MailRemainder:
    """Count the subjects of the notices beyond the `first`, and how many wait."""
    things = these.values("request", "execution", "alarm").distinct()
    waiting = things.filter(kind__in=WAITING_KINDS).count()
    told = _keep_newest_each([one for one in first if one.kind in WAITING_KINDS])
    return email.MailRemainder(
        things.count() - len(_keep_newest_each(first)), waiting - len(told)
    )


def _filter_concerning(person: Person, rows: Sequence[Notice]) -> list[Notice]:
    still = []
    for row in rows:
        row.person = person  # this object has the roles already loaded
        if why := find_drop_reason(row):
            Notice.objects.filter(pk=row.pk).update(let_go=why)
        else:
            still.append(row)
    return still


def _keep_newest_each(notices: Sequence[Notice]) -> list[Notice]:
    """Keep the last of several notices about one subject: it is the current state."""
    newest = {(one.request_id, one.execution_id, one.alarm_id): one for one in notices}
    return list(newest.values())


HOUR = timedelta(hours=1)


def deliver_notice(notice: Notice) -> bool:
    """Send one notice, unless it no longer concerns its reader or the reader's hour is
    full; then it waits for a digest. Returns whether it was sent."""
    if notice.sent_at is not None or notice.let_go or notice.digest:
        return False
    if why := find_drop_reason(notice):
        Notice.objects.filter(pk=notice.pk).update(let_go=why)
        return False
    if later := _find_time_with_room(notice):
        postpone_notice(notice=notice, until=later)
        return False
    email.send_mail(notice.person, build_mail_line(notice))
    failpoints.point("mail_taken", str(notice.pk))
    Notice.objects.filter(pk=notice.pk).update(sent_at=Now())
    return True


def _find_time_with_room(notice: Notice) -> datetime | None:
    if is_mandatory(notice.kind, permissions.find_deciding_role(notice.person)):
        return None
    return compute_full_until([notice.person]).get(notice.person_id)


def compute_full_until(people: Collection[Person]) -> dict[int, datetime]:
    """For each person who has had their mails of this hour: when they may get the next
    one, by primary key. One query. Notices sent at the same moment were one mail."""
    recent = Notice.objects.filter(person__in=people, sent_at__gt=clock.now() - HOUR)
    mails = recent.values("person").annotate(
        n=Count("sent_at", distinct=True), first=Min("sent_at")
    )
    had = {one["person"]: one for one in mails}
    full = {}
    for person in people:
        said: NotificationPreferences = preferences.load_preferences(
            person
        ).notifications
        mine = had.get(person.pk)
        if mine and mine["n"] >= said.per_hour:
            room = mine["first"] + HOUR
            full[person.pk] = find_quiet_end(said, room) or room
    return full


@transaction.atomic(durable=True)
def postpone_notice(*, notice: Notice, until: datetime) -> None:
    """Move a notice to the digest mail that is sent at `until`."""
    Notice.objects.filter(pk=notice.pk).update(due_at=until, digest=True)
    notice.due_at, notice.digest = until, True
    enqueue_notices([notice])


def enqueue_notices(notices: Iterable[Notice]) -> None:
    """Publish outbox messages that deliver the notices when they are due. Caller holds
    a transaction."""
    gathered = {}
    for notice in notices:
        if notice.digest:
            gathered[notice.person.public_id] = notice.due_at
        else:
            outbox.publish_later("notice.due", str(notice.pk), at=notice.due_at)
    outbox.publish_once("notice.digest", gathered)


def deliver_due_notice(notice_id: str) -> bool:
    """Send a delayed notice that is now due. Returns whether it was sent."""
    found = Notice.objects.select_related(
        "person__preferences", "request", "execution", "alarm"
    )
    notice = found.filter(pk=notice_id).first()
    return notice is not None and deliver_notice(notice)


def send_test_notice(public_id: str) -> None:
    """Send the test mail that a person asked for."""
    email.send_test_mail(Person.objects.get(public_id=public_id))


# Supervisors get these whatever their preferences: somebody must be responsible.
MANDATORY_KINDS = frozenset({"escalated", "due_soon"})


@dataclass(frozen=True, slots=True)
class SendTime:
    """When a notice is sent, and whether it waits for the digest mail of that time."""

    at: datetime
    digest: bool = False


def is_mandatory(kind: str, role: Role | None) -> bool:
    """Whether preferences cannot mute the notice, only delay it by quiet hours."""
    return kind in MANDATORY_KINDS and role is Role.SUPERVISOR


def compute_send_time(
    said: NotificationPreferences, kind: str, risk: str, *, must: bool, now: datetime
) -> SendTime | None:
    """Compute when a notice is sent; None for never. Notices that quiet hours delay go
    into one digest mail at their end."""
    when = "now" if must else said.mail(risk)
    if when == "never":
        return None
    if when == "digest":
        return SendTime(compute_next_digest(said, now), digest=True)
    wait = timedelta(minutes=said.minutes)
    at = now + wait if when == "unclaimed" and kind == "opened" else now
    held = None if must and said.on_call else find_quiet_end(said, at)
    return SendTime(held, digest=True) if held else SendTime(at)


def find_quiet_end(said: NotificationPreferences, at: datetime) -> datetime | None:
    """The end of the reader's quiet hours if `at` is within them, else None."""
    begin, end = said.quiet_from, said.quiet_until
    if begin is None or end is None or begin == end:
        return None
    local = at.astimezone(ZoneInfo(said.zone))
    now = local.time()
    within = begin <= now < end if begin < end else now >= begin or now < end
    return _compute_next_time(local, end) if within else None


def compute_next_digest(said: NotificationPreferences, at: datetime) -> datetime:
    """The next time of this person's daily digest."""
    return _compute_next_time(at.astimezone(ZoneInfo(said.zone)), said.digest_at)


def _compute_next_time(local: datetime, at: time) -> datetime:
    """The next time, after `local`, at which its wall clock shows `at`."""
    found = local.replace(hour=at.hour, minute=at.minute, second=0, microsecond=0)
    return found if found > local else found + timedelta(days=1)

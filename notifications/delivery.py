"""Send planned notices, each on its channel.

A notice is sent only while it still concerns its reader, and within the number of
messages an hour that the reader set. Notices for later are gathered into one digest:
for the reader's time of day, the end of their quiet hours, or when they may get
messages again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from operator import attrgetter

from celery.exceptions import SoftTimeLimitExceeded
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from journal import clock
from journal.prepared_queries import Parameter, PreparedQuery, PreparedUpdate
from policies.choices import Risk, Role
from policies.models import Person
from reviews import locks, permissions
from reviews.choices import (
    AlarmStatus,
    ExecutionStatus,
    QuestionStatus,
    RequestStatus,
)
from reviews.models import Alarm, ApprovalRequest, Execution, Hold, Notice, Question
from reviews.models.people import SUBJECTS
from reviews.people import preferences
from reviews.questions import addressees

from . import send_times
from .channels import attempts, registry
from .channels.contract import (
    ChannelMessage,
    DeliveryError,
    MessageLine,
    MessageRemainder,
)
from .events import NOTICE_TITLES, WAITING_KINDS
from .on_call import duty

# Notices about another person's hold, so that hold is no reason to drop them.
HOLD_KINDS = frozenset({"offered", "declined", "broken", "handed_over"})

_OTHER_HOLDER = PreparedQuery(
    lambda: (
        Hold.objects.filter(request=Parameter("request"), until__gt=Now())
        .exclude(holder=Parameter("person"))
        .filter(holder__isnull=False)
        .values_list("pk")
    )
)
_DROP = PreparedUpdate(
    lambda: (
        Notice.objects.filter(pk=Parameter("pk")),
        {"let_go": Parameter("reason")},
    )
)


def build_message_line(notice: Notice) -> MessageLine:
    """Build the line that a message prints for a notice."""
    about = next(filter(None, (getattr(notice, subject) for subject in SUBJECTS)), None)
    assert about is not None  # the database says so
    settled = notice.request if notice.kind == "settled" else None
    ends = f", {settled.status}" if settled else ""
    waits = notice.kind in WAITING_KINDS
    what = f"{NOTICE_TITLES[notice.kind]}{ends}"
    return MessageLine(what, about, waits, notice.kind, notice.channel)


def find_drop_reason(notice: Notice) -> str:
    """Why the notice no longer concerns its reader, as a code; "" while it does."""
    if notice.person is not None and not notice.person.is_active:
        return "not_theirs"
    if notice.person is not None and not _has_address(notice.person, notice.channel):
        return "not_theirs"
    if notice.execution is not None:
        return _find_effect_drop_reason(notice, notice.execution)
    if notice.alarm is not None:
        return _find_alarm_drop_reason(notice, notice.alarm)
    if notice.drill is not None:
        return "settled" if notice.drill.ends_at <= clock.now() else ""
    if notice.question is not None:
        return _find_question_drop_reason(notice, notice.question)
    if notice.request is None or notice.kind not in WAITING_KINDS:
        return ""
    return _find_request_drop_reason(notice, notice.request)


def _has_address(person: Person, channel: str) -> bool:
    known = registry.load_channels().get(channel)
    return known is not None and bool(known.find_address(person))


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
    if notice.person is not None:
        queue = find_concerned_queue(execution, notice.kind)
        if not _supervises(notice.person, queue):
            return "not_theirs"
    known = execution.status != ExecutionStatus.UNKNOWN
    return "settled" if notice.kind == "unknown" and known else ""


def _find_alarm_drop_reason(notice: Notice, alarm: Alarm) -> str:
    if notice.person is not None and not _supervises(notice.person, alarm.queue_id):
        return "not_theirs"
    return "settled" if alarm.status == AlarmStatus.CLOSED else ""


def _find_question_drop_reason(notice: Notice, question: Question) -> str:
    open_ = question.status == QuestionStatus.OPEN and question.expires_at > clock.now()
    if not open_:
        return "settled"
    if notice.person is None:
        return ""
    cause = addressees.describe_why_cannot_answer(notice.person, question)
    return "not_theirs" if cause else ""


def _supervises(person: Person, queue: int | None) -> bool:
    """Whether the person is a supervisor, and of this queue if one is given."""
    if permissions.find_deciding_role(person) is not Role.SUPERVISOR:
        return False
    return queue is None or queue in permissions.queues_of(person)


def _find_request_drop_reason(notice: Notice, request: ApprovalRequest) -> str:
    waits = request.status == RequestStatus.PENDING and request.expires_at > clock.now()
    if not waits or request.version != notice.version:
        return "settled"
    if notice.person is None:
        return ""
    if permissions.describe_why_cannot_decide(notice.person, request, request.sealed):
        return "not_theirs"
    if not _is_still_addressee(notice, request):
        return "not_theirs"
    if send_times.is_mandatory(
        notice.kind, permissions.find_deciding_role(notice.person)
    ):
        return ""
    prefs = preferences.load_preferences(notice.person).notifications
    timing = prefs.choose_timing(notice.channel, request.risk)
    late = timing == "unclaimed" and notice.kind == "opened"
    asks = (prefs.once_taken or late) and notice.kind not in HOLD_KINDS
    return "taken" if asks and _is_held_by_other(notice, request) else ""


def _is_still_addressee(notice: Notice, request: ApprovalRequest) -> bool:
    """Whether the request is still assigned or offered to this person."""
    if notice.kind == "assigned":
        return request.assignee_id == notice.person_id
    if notice.kind != "offered":
        return True
    offers = Hold.objects.filter(request=request, until__gt=Now())
    return offers.filter(offered_to=notice.person).exists()


def _is_held_by_other(notice: Notice, request: ApprovalRequest) -> bool:
    """Whether another person holds the request now."""
    person = notice.person_id
    return _OTHER_HOLDER.fetch_first(request=request.pk, person=person) is not None


# Lines of one digest mail, which states the number of the others.
MAX_MAIL_LINES = 100
# Rows of one statement. A busy hour may gather tens of thousands, and a task stopped at
# its time limit must find less to do at the next attempt.
UPDATE_CHUNK = 1000


def send_digest(public_id: str) -> bool:
    """Send one message with the gathered notices that still concern this person, on
    each channel that has any. Returns whether there were any. Beyond `MAX_MAIL_LINES`,
    the message only gives the number. Raises OperationalError when another worker holds
    the lock on digests to this person for too long, and the last error of a channel."""
    person = Person.objects.select_related("preferences").get(public_id=public_id)
    with locks.lock_digest_mail(
        person.public_id
    ):  # else two workers could send the same message
        return _send_gathered(person, clock.now())


def _send_gathered(person: Person, now: datetime) -> bool:
    everything = _select_gathered(person, now)
    sent, failed = False, None
    names = everything.order_by("channel").values_list("channel", flat=True).distinct()
    for channel in list(names):
        try:
            sent |= _send_gathered_on(
                channel, person, everything.filter(channel=channel)
            )
        except SoftTimeLimitExceeded:
            raise
        except Exception as error:  # any error of a channel
            failed = error
    if failed is not None:
        raise failed
    return sent


def _send_gathered_on(channel: str, person: Person, gathered: QuerySet[Notice]) -> bool:
    _drop_settled(person, channel, gathered)
    # Fix the set now: notices that arrive from here on belong to the next message.
    these = _list_keys(_sort_notices(gathered))
    first = list(_sort_notices(gathered.filter(pk__in=these[:MAX_MAIL_LINES])))
    rest = MessageRemainder()
    if len(these) > MAX_MAIL_LINES:
        rest = _count_remainder(gathered.filter(pk__in=these), first)
    still = _filter_concerning(person, first)
    if not still and not rest.count:
        _update_in_chunks(gathered, these, sent_at=clock.now())
        return False
    lines = [build_message_line(notice) for notice in _keep_newest_each(still)]
    message = ChannelMessage(
        key=f"digest-{these[0]}",
        lines=lines,
        person=person,
        is_digest=not _is_single(lines, rest),
        rest=rest,
    )
    message_id = attempts.attempt_message(first, channel, message)
    if message_id is None:
        return False
    _update_in_chunks(gathered, these, sent_at=clock.now(), message_id=message_id)
    return True


def _is_single(lines: Sequence[MessageLine], rest: MessageRemainder) -> bool:
    """Whether the message is one notice that waited for others in vain."""
    return (
        len(lines) == 1
        and not rest.count
        and lines[0].kind in send_times.GATHERED_KINDS
    )


def _select_gathered(person: Person, now: datetime) -> QuerySet[Notice]:
    return Notice.objects.filter(
        person=person, digest=True, due_at__lte=now, sent_at__isnull=True, let_go=""
    )


def _drop_settled(person: Person, channel: str, gathered: QuerySet[Notice]) -> None:
    """Drop the notices that concern nobody any more, by a few statements for all."""
    if not person.is_active or not _has_address(person, channel):
        _update_in_chunks(gathered, _list_keys(gathered), let_go="not_theirs")
        return
    asked = gathered.filter(kind__in=WAITING_KINDS, request__isnull=False)
    pending = Q(request__status=RequestStatus.PENDING)
    waits = pending & Q(request__expires_at__gt=clock.now())
    over = asked.exclude(waits, request__version=F("version"))
    _update_in_chunks(gathered, _list_keys(over), let_go="settled")
    questions = gathered.filter(question__isnull=False)
    open_ = Q(question__status=QuestionStatus.OPEN)
    ended = questions.exclude(open_, question__expires_at__gt=clock.now())
    _update_in_chunks(gathered, _list_keys(ended), let_go="settled")


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
        "drill__queue",
        "question__queue",
        "question__person",
    )
    waits = Q(kind__in=WAITING_KINDS)
    return related.annotate(waits=waits).order_by("-waits", "request__expires_at", "pk")


def _count_remainder(
    these: QuerySet[Notice], first: Sequence[Notice]
) -> MessageRemainder:
    """Count the subjects of the notices beyond the `first`, and how many wait."""
    things = these.values(*SUBJECTS).distinct()
    waiting = things.filter(kind__in=WAITING_KINDS).count()
    waiting_first = _keep_newest_each(
        [notice for notice in first if notice.kind in WAITING_KINDS]
    )
    return MessageRemainder(
        things.count() - len(_keep_newest_each(first)), waiting - len(waiting_first)
    )


def _filter_concerning(person: Person, rows: Sequence[Notice]) -> list[Notice]:
    still = []
    for row in rows:
        row.person = person  # this object has the roles already loaded
        if why := find_drop_reason(row):
            _DROP.execute(pk=row.pk, reason=why)
        else:
            still.append(row)
    return still


def _keep_newest_each(notices: Sequence[Notice]) -> list[Notice]:
    """Keep the last of several notices about one subject: it is the current state."""
    subject = attrgetter(*(f"{name}_id" for name in SUBJECTS))
    return list({subject(notice): notice for notice in notices}.values())


def deliver_notice(notice: Notice) -> bool:
    """Send one notice, unless it no longer concerns its reader or the reader's hour is
    full; then it waits for a digest. Returns whether it was sent. A channel's refusal
    is recorded, and the next attempt is enqueued. Raises any other error of a
    channel."""
    if notice.sent_at is not None or notice.let_go or notice.digest:
        return False
    if notice.request_id is not None:
        known = ApprovalRequest.with_canaries
        notice.request = known.get_with_proposal(notice.request_id)
    if why := find_drop_reason(notice):
        _DROP.execute(pk=notice.pk, reason=why)
        return False
    if later := _find_time_with_room(notice):
        attempts.postpone_notice(notice=notice, until=later)
        return False
    message = ChannelMessage(
        key=str(notice.pk),
        lines=[build_message_line(notice)],
        person=notice.person,
        target=notice.target,
        thread=_find_thread(notice),
        people=_list_mentioned_people(notice),
    )
    return attempts.attempt_notice(notice, message)


def _find_thread(notice: Notice) -> str:
    """The id of the first message about the same request in the same place."""
    if notice.person is not None or notice.request is None:
        return ""
    sent = Notice.objects.filter(
        request=notice.request,
        person=None,
        channel=notice.channel,
        target=notice.target,
        sent_at__isnull=False,
    )
    return sent.order_by("sent_at").values_list("message_id", flat=True).first() or ""


MOST_MENTIONED = 10


def _list_mentioned_people(notice: Notice) -> list[Person]:
    """Whom a message in a place mentions: of a critical request that waits, the people
    on call who may decide it, or all who may decide it when nobody is on call."""
    request = notice.request
    if notice.person is not None or request is None or notice.kind not in WAITING_KINDS:
        return []
    if request.risk != Risk.CRITICAL:
        return []
    deciders = [
        person
        for person in permissions.list_deciders(
            request.queue_id, roles=(Role.REVIEWER, Role.SUPERVISOR)
        )
        if not request.proposal.bars(person.public_id)
    ]
    on_call = duty.select_on_call(request.queue_id, deciders, clock.now())
    called = [person for person in deciders if person.pk in on_call]
    return (called or deciders)[:MOST_MENTIONED]


def _find_time_with_room(notice: Notice) -> datetime | None:
    person = notice.person
    if person is None:
        return None
    if send_times.is_mandatory(notice.kind, permissions.find_deciding_role(person)):
        return None
    return send_times.compute_full_until([person], notice.channel).get(person.pk)


def deliver_due_notice(notice_id: str) -> bool:
    """Send a delayed notice that is now due. Returns whether it was sent."""
    notices = Notice.objects.select_related(
        "person__preferences", "execution", "alarm", "drill__queue"
    )
    notice = notices.filter(pk=notice_id).first()
    return notice is not None and deliver_notice(notice)


def send_test_notice(public_id: str, channel: str = "email") -> None:
    """Send the test message that a person asked for. It is not sent again when the
    channel refuses it: the person sees that nothing arrives. Raises any other error of
    the channel."""
    person = Person.objects.get(public_id=public_id)
    message = ChannelMessage(key=f"test-{public_id}", person=person)
    with suppress(DeliveryError):
        attempts.dispatch_message(channel, message)

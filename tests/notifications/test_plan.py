"""Who is told of a request: each once, as they chose, while it still concerns them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from datetime import time, timedelta
from smtplib import SMTPException
from typing import Any

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.core import mail
from django.core.mail import EmailMessage
from django.db.models import F

from hitl import tasks
from journal import clock, outbox
from journal.models import OutboxMessage
from notifications.channels import content
from notifications.events import NOTICE_TITLES
from policies.choices import Risk
from policies.models import Person
from reviews import deadlines
from reviews.alarms import standing
from reviews.executions import settle
from reviews.holds import rows, take
from reviews.models import ApprovalRequest, Hold, Notice
from reviews.people import preferences
from reviews.people.preferences import NotificationPreferences
from reviews.presenters.shapes import SentencePart, TextPart, ValuePart
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.hitl.tasks.draining import drain
from tests.markup import read_text
from tests.notifications.occasions import (
    announced,
    assigned,
    broken,
    drilled,
    freed,
    handed_over,
    offered,
    returned,
    unknown,
)
from tests.reviews import states
from tests.sources import product
from tests.stack import Stack, wait_until

ALL_DAY = {"quiet_from": time(0), "quiet_until": time(23, 59, 59)}


def chooses(person: Person, **said: Any) -> None:
    preferences.save_preferences(
        person=person, notifications=NotificationPreferences(**said)
    )


def told() -> list[str]:
    """Whose mails went out, by user name."""
    return sorted(one.to[0].partition("@")[0] for one in mail.outbox)


def time_comes() -> None:
    """Move what waits into the past and let its tasks run; the clock never moves."""
    past = clock.now() - timedelta(seconds=1)
    OutboxMessage.objects.filter(done_at=None).update(due_at=past, held_until=past)
    Notice.objects.filter(sent_at=None).update(due_at=past)
    drain("notice.due")
    drain("notice.digest")


def test_nobody_is_told_twice(gate: Gate) -> None:
    request = propose(gate.agent).request
    drain("request.opened")
    outbox_again = OutboxMessage.objects.filter(topic="request.opened")
    outbox_again.update(done_at=None)
    drain("request.opened")
    assert told() == ["rita", "sam", "sue", "tom"]
    assert Notice.objects.filter(request=request, sent_at__isnull=False).count() == 4


def test_never_and_by_risk(gate: Gate) -> None:
    chooses(gate.rita, email={Risk.HIGH: "never"})
    chooses(gate.tom, email={Risk.LOW: "never"})
    propose(gate.agent)
    drain("request.opened")
    assert told() == ["sam", "sue", "tom"]


def test_only_if_nobody_has_taken_it(gate: Gate) -> None:
    for name in ("tom", "sue", "sam"):
        chooses(gate.people[name], email={Risk.HIGH: "never"})
    chooses(gate.rita, email={Risk.HIGH: "unclaimed"}, minutes=5)
    taken, free = (
        propose(gate.agent).request,
        propose(gate.agent, customer="C-2").request,
    )
    drain("request.opened")
    drain("notice.due")
    assert told() == []
    hold(taken, gate.tom)
    time_comes()
    assert told() == ["rita"]
    assert free.pk in mail.outbox[0].body
    assert Notice.objects.get(request=taken).let_go == "taken"


def hold(request: ApprovalRequest, person: Person) -> None:
    now = clock.now()
    given = {"holder": person, "token": "t", "taken_at": now}
    Hold.objects.update_or_create(
        request=request, defaults={**given, "until": now + timedelta(minutes=5)}
    )


def test_what_is_decided_is_told_to_nobody_any_more(gate: Gate) -> None:
    chooses(gate.rita, email={Risk.HIGH: "unclaimed"})
    request = propose(gate.agent).request
    drain("request.opened")
    before = len(mail.outbox)
    decide(request, gate.tom, "reject")
    time_comes()
    assert len(mail.outbox) == before
    assert Notice.objects.get(person=gate.rita).let_go == "settled"


def test_a_digest_is_one_mail_of_what_still_waits(gate: Gate) -> None:
    for name in ("tom", "sue", "sam"):
        chooses(gate.people[name], email={Risk.HIGH: "never"})
    chooses(gate.rita, email={Risk.HIGH: "digest"})
    requests = [propose(gate.agent, customer=f"C-{n}").request for n in range(3)]
    drain("request.opened")
    assert mail.outbox == []
    decide(requests[0], gate.tom, "reject")
    time_comes()
    (one,) = mail.outbox
    assert one.subject == "2 requests need your decision"
    assert requests[0].pk not in one.body
    assert requests[1].pk in one.body
    assert requests[2].pk in one.body
    time_comes()
    assert len(mail.outbox) == 1


def test_quiet_hours_hold_it_back(gate: Gate) -> None:
    chooses(gate.rita, **ALL_DAY)
    propose(gate.agent)
    drain("request.opened")
    assert told() == ["sam", "sue", "tom"]
    notice = Notice.objects.get(person=gate.rita)
    assert notice.sent_at is None
    assert notice.due_at > clock.now()


def test_what_quiet_hours_held_back_comes_as_one_mail(gate: Gate) -> None:
    chooses(gate.rita, **ALL_DAY)
    requests = [propose(gate.agent, customer=f"C-{n}").request for n in range(3)]
    drain("request.opened")
    mail.outbox.clear()
    decide(requests[0], gate.tom, "reject")
    time_comes()
    (one,) = mail.outbox
    assert (told(), one.subject) == (["rita"], "2 requests need your decision")
    assert [request.pk in one.body for request in requests] == [False, True, True]


@pytest.mark.parametrize("count", [1, 3])
def test_reminders_at_half_time_are_one_message(gate: Gate, count: int) -> None:
    for number in range(count):
        propose(gate.agent, customer=f"C-{number}")
    past = F("opened_at") - (F("expires_at") - F("opened_at")) * 1.5
    ApprovalRequest.objects.update(opened_at=past)
    assert deadlines.enqueue_reminders() == count
    drain("request.half_time")
    assert told() == []
    time_comes()
    (sent,) = [one for one in mail.outbox if one.to == ["rita@example.com"]]
    first = "Half of the time is over: pay" if count == 1 else "3 requests need your"
    assert sent.subject.startswith(first)
    assert sent.body.count("/requests/") == count


def test_an_escalation_reaches_a_supervisor_whatever_they_chose(gate: Gate) -> None:
    never = dict.fromkeys(Risk, "never")
    chooses(gate.sue, email=never)
    chooses(gate.sam, email=never, **ALL_DAY)
    decide(propose(gate.agent).request, gate.rita, "escalate")
    drain("request.escalated")
    assert told() == ["sue"]


def test_on_call_is_woken(gate: Gate) -> None:
    chooses(gate.sue, **ALL_DAY)
    chooses(gate.sam, **ALL_DAY, on_call=True)
    decide(propose(gate.agent).request, gate.rita, "escalate")
    drain("request.escalated")
    assert told() == ["sam"]


def test_when_all_would_sleep_all_are_woken(gate: Gate) -> None:
    chooses(gate.sue, **ALL_DAY)
    chooses(gate.sam, **ALL_DAY)
    decide(propose(gate.agent).request, gate.rita, "escalate")
    drain("request.escalated")
    assert told() == ["sam", "sue"]


def test_more_than_so_many_an_hour_wait(gate: Gate) -> None:
    for name in ("tom", "sue", "sam"):
        chooses(gate.people[name], email={Risk.HIGH: "never"})
    chooses(gate.rita, per_hour=2)
    for number in range(3):
        propose(gate.agent, customer=f"C-{number}")
    drain("request.opened")
    assert told() == ["rita", "rita"]
    waiting = Notice.objects.get(sent_at=None)
    assert waiting.due_at > clock.now() + timedelta(minutes=59)
    Notice.objects.exclude(pk=waiting.pk).update(
        sent_at=clock.now() - timedelta(hours=2)
    )
    time_comes()
    assert told() == ["rita"] * 3


def test_one_dead_address_keeps_nobody_from_theirs(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    propose(gate.agent)
    send = EmailMessage.send

    def fails(self: Any, *given: Any) -> int:
        if self.to == ["rita@example.com"]:
            raise SMTPException
        return send(self, *given)

    monkeypatch.setattr(EmailMessage, "send", fails)
    message = OutboxMessage.objects.get(topic="request.opened")
    with pytest.raises(SMTPException):
        tasks.notify_people(message.pk)
    assert told() == ["sam", "sue", "tom"]
    monkeypatch.undo()
    OutboxMessage.objects.update(held_until=None)
    tasks.notify_people(message.pk)
    assert told() == ["rita", "sam", "sue", "tom"]


def test_a_time_limit_is_no_dead_address(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who goes on after it is killed, and the promise has no time to be put off."""
    propose(gate.agent)
    tried = []

    def slow(self: Any, *given: Any) -> int:
        tried.append(self.to)
        raise SoftTimeLimitExceeded

    monkeypatch.setattr(EmailMessage, "send", slow)
    message = OutboxMessage.objects.get(topic="request.opened")
    with pytest.raises(SoftTimeLimitExceeded):
        tasks.notify_people(message.pk)
    assert len(tried) == 1


def test_some_who_hang_keep_nobody_from_theirs_for_long(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    propose(gate.agent)
    send = EmailMessage.send

    def hangs(self: Any, *given: Any) -> int:
        if self.to != ["tom@example.com"]:
            raise SoftTimeLimitExceeded
        return send(self, *given)

    monkeypatch.setattr(EmailMessage, "send", hangs)
    message = OutboxMessage.objects.get(topic="request.opened")
    for _ in range(60):  # each finds Tom first with one in four
        OutboxMessage.objects.update(held_until=None)
        with contextlib.suppress(SoftTimeLimitExceeded):
            tasks.notify_people(message.pk)
    assert told() == ["tom"]


def escalated_meanwhile(gate: Gate) -> tuple[str, Callable[[], object]]:
    request = propose(gate.agent).request
    return "request.opened", lambda: decide(request, gate.rita, "escalate")


def closed_meanwhile(gate: Gate) -> tuple[str, Callable[[], object]]:
    alarm = states.open_alarm(gate)
    return "alarm.raised", lambda: standing.close_alarm(
        alarm_id=alarm.pk, person=gate.sue, note="looked into"
    )


@pytest.mark.parametrize("happens", [escalated_meanwhile, closed_meanwhile])
def test_what_was_planned_before_a_death_is_let_go_when_it_moved_on(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, happens: Any
) -> None:
    topic, moves_on = happens(gate)
    message = OutboxMessage.objects.get(topic=topic)
    monkeypatch.setattr(EmailMessage, "send", _dies)
    with pytest.raises(SMTPException):
        tasks.notify_people(message.pk)
    monkeypatch.undo()
    planned = list(Notice.objects.values_list("pk", flat=True))
    assert planned
    moves_on()
    OutboxMessage.objects.filter(pk=message.pk).update(held_until=None)
    tasks.notify_people(message.pk)
    left = Notice.objects.filter(pk__in=planned).values_list("let_go", flat=True)
    assert set(left) == {"settled"}


def _dies(self: EmailMessage, *given: Any) -> int:
    raise SMTPException


def test_a_mail_says_the_effect_and_no_word_that_could_be_somebody_elses() -> None:
    said: list[SentencePart] = [
        TextPart("Pay "),
        ValuePart("899.00"),
        TextPart(" to "),
        ValuePart("C-1"),
        TextPart(" for "),
        ValuePart("visit evil.example now"),
        TextPart(", by "),
        ValuePart("x@evil.example"),
        TextPart(", "),
        ValuePart("[sensitive · redacted · #3f2a]"),
        TextPart(", "),
        ValuePart("3 recipients", untrusted=False),
    ]
    found = content.format_plain_effect(said)
    assert found == "Pay 899.00 to C-1 for […], by […], […], 3 recipients"


def test_a_test_reaches_oneself(gate: Gate, client: Any) -> None:
    client.force_login(gate.rita, "django.contrib.auth.backends.ModelBackend")
    answer = client.post("/me/notifications/test/", follow=True)
    assert "rita@example.com" in read_text(answer, "message")
    drain("notice.test")
    assert told() == ["rita"]
    assert "/me/notifications/" in mail.outbox[0].body


EVERY_OCCASION = [
    freed,
    offered,
    assigned,
    returned,
    broken,
    handed_over,
    announced,
    unknown,
    drilled,
]


@pytest.mark.parametrize("happens", EVERY_OCCASION)
def test_every_message_goes_out_by_default(gate: Gate, happens: Any) -> None:
    drain(happens(gate))
    assert "sue" in told()


@pytest.mark.parametrize("happens", EVERY_OCCASION)
def test_every_message_is_silent_for_who_chose_never(gate: Gate, happens: Any) -> None:
    chooses(gate.sue, email=dict.fromkeys(Risk, "never"))
    drain(happens(gate))
    assert "sue" not in told()


@pytest.mark.parametrize("happens", EVERY_OCCASION)
def test_every_message_waits_out_the_quiet_hours(gate: Gate, happens: Any) -> None:
    chooses(gate.sue, **ALL_DAY, on_call=True)
    drain(happens(gate))
    assert "sue" not in told()
    time_comes()
    assert "sue" in told()


@pytest.mark.parametrize("happens", EVERY_OCCASION)
def test_every_message_counts_and_is_held_by_the_hour(gate: Gate, happens: Any) -> None:
    chooses(gate.sue, per_hour=1)
    earlier = propose(gate.agent, customer="C-9").request
    now = clock.now()
    sent = {"at": now, "due_at": now, "sent_at": now}
    Notice.objects.create(person=gate.sue, request=earlier, kind="opened", **sent)
    drain(happens(gate))
    assert "sue" not in told()
    assert Notice.objects.get(person=gate.sue, sent_at=None).due_at > now


@pytest.mark.parametrize("happens", EVERY_OCCASION)
def test_every_message_fits_a_digest(gate: Gate, happens: Any) -> None:
    chooses(gate.sue, email=dict.fromkeys(Risk, "digest"))
    drain(happens(gate))
    assert "sue" not in told()
    time_comes()
    assert told().count("sue") == 1
    assert Notice.objects.filter(person=gate.sue, sent_at=None).count() == 0


def test_it_is_told_each_time_that_it_is_free(gate: Gate) -> None:
    request = propose(gate.agent).request
    for _ in range(2):
        take.take_hold(request_id=request.pk, person=gate.rita)
        take.record_waiting_person(request_id=request.pk, person=gate.tom)
        rows.release_hold(request_id=request.pk, person=gate.rita)
        drain("request.freed")
        drain("request.freed")
    assert told() == ["tom", "tom"]


def test_what_is_free_and_taken_again_is_told_only_to_who_wants_that(
    gate: Gate,
) -> None:
    chooses(gate.sue, once_taken=False)
    request = propose(gate.agent).request
    take.take_hold(request_id=request.pk, person=gate.rita)
    for name in ("tom", "sue"):
        take.record_waiting_person(request_id=request.pk, person=gate.people[name])
    rows.release_hold(request_id=request.pk, person=gate.rita)
    take.take_hold(request_id=request.pk, person=gate.sam)
    drain("request.freed")
    assert told() == ["sue"]


def test_an_offer_that_was_taken_back_is_told_to_nobody(gate: Gate) -> None:
    chooses(gate.sue, **ALL_DAY)
    topic = offered(gate)
    drain(topic)
    request = ApprovalRequest.objects.get()
    rows.release_hold(request_id=request.pk, person=gate.rita)
    time_comes()
    assert told() == []
    assert Notice.objects.get(kind="offered").let_go == "not_theirs"


def test_an_outcome_that_is_known_again_is_told_to_nobody(gate: Gate) -> None:
    chooses(gate.sue, **ALL_DAY)
    execution = states.unknown(gate)
    drain("execution.unknown")
    notice = Notice.objects.get(person=gate.sue, kind="unknown")
    assert notice.execution == execution
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sam, happened=True, reason="They said so"
    )
    before = len(mail.outbox)
    time_comes()
    assert len(mail.outbox) == before


def test_a_digest_says_of_each_thing_only_how_it_is_now(gate: Gate) -> None:
    chooses(gate.sue, email=dict.fromkeys(Risk, "digest"))
    drain("request.opened")
    topic = freed(gate)
    drain("request.opened")
    drain(topic)
    time_comes()
    (one,) = [m for m in mail.outbox if m.to == ["sue@example.com"]]
    assert one.subject == "1 request needs your decision"
    assert NOTICE_TITLES["freed"] in one.body


def test_a_digest_counts_what_ended_as_messages(gate: Gate) -> None:
    chooses(gate.sue, email=dict.fromkeys(Risk, "digest"))
    decide(propose(gate.agent).request, gate.rita, "reject")
    drain("request.settled")
    time_comes()
    (one,) = [m for m in mail.outbox if m.to == ["sue@example.com"]]
    assert one.subject == "1 notification"
    assert f"{NOTICE_TITLES['settled']}, rejected" in one.body


def test_there_is_one_door_for_mail() -> None:
    """Nothing sends but what looks at preferences and hours."""
    asks = re.compile(r"^from [\w.]+ import .*\bemail\b", re.MULTILINE)
    sends = {source.path for source in product() if "EmailMessage" in source.text}
    assert sends == {"notifications/channels/email.py"}
    assert {source.path for source in product() if asks.search(source.text)} == {
        "notifications/plan.py",  # incidents, which concern every supervisor
    }
    found = {s.path for s in product() if ".dispatch(" in s.text}
    assert found == {"notifications/channels/attempts.py"}


def test_what_is_promised_for_later_is_not_to_be_had_before(gate: Gate) -> None:
    chooses(gate.rita, email={Risk.HIGH: "unclaimed"})
    propose(gate.agent)
    drain("request.opened")
    message = OutboxMessage.objects.get(topic="notice.due")
    with outbox.consume(message.pk) as mine:
        assert mine is None


@pytest.mark.servers
def test_a_real_worker_sends_what_waited(live: Stack, gate: Gate) -> None:
    chooses(gate.rita, email={Risk.HIGH: "unclaimed"})
    live.start_worker()
    request = propose(gate.agent).request
    wait_until(lambda: len(mailed(live, request.pk)) == 3, 20)
    assert not mailed(live, request.pk) & {"rita@example.com"}
    past = clock.now() - timedelta(seconds=1)
    waiting = OutboxMessage.objects.filter(topic="notice.due", done_at=None)
    wait_until(lambda: waiting.update(due_at=past, held_until=past) == 1, 5)
    wait_until(lambda: "rita@example.com" in mailed(live, request.pk), 20)


def mailed(live: Stack, request_id: str) -> set[str]:
    """To whom the worker has written about a request, into the files of its mail."""
    texts = [path.read_text() for path in (live.state / "mail").glob("*.log")]
    parts = [part for text in texts for part in text.split("-" * 79)]
    return {
        line.removeprefix("To: ")
        for part in parts
        if request_id in part
        for line in part.splitlines()
        if line.startswith("To: ")
    }


def test_what_was_not_sent_yet_is_never_forgotten(gate: Gate) -> None:
    propose(gate.agent)
    drain("request.opened")
    _sent, waits, gone = Notice.objects.all()[:3]
    Notice.objects.filter(pk=waits.pk).update(sent_at=None)
    Notice.objects.filter(pk=gone.pk).update(sent_at=None, let_go="settled")
    Notice.objects.update(at=clock.now() - timedelta(days=400))
    tasks.prune()
    assert list(Notice.objects.all()) == [waits]

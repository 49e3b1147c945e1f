"""More mails than somebody wants in an hour become one, as soon as there is room."""

from __future__ import annotations

from datetime import time, timedelta
from functools import partial
from typing import Any

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.core import mail
from django.db import connection
from django.test.utils import CaptureQueriesContext

from journal import clock
from journal.models import OutboxMessage
from notifications import delivery, plan, send_times
from notifications.channels import email
from notifications.events import NOTICE_TITLES
from policies.choices import Risk, Role
from reviews.models import ApprovalRequest, Notice
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.hitl.tasks.draining import drain
from tests.notifications.test_plan import chooses, time_comes
from tests.races.together import at_once

pytestmark = pytest.mark.django_db

DIGEST = "notice.digest"
OPENED = NOTICE_TITLES["opened"]


@pytest.fixture(autouse=True)
def _only_rita(gate: Gate) -> None:
    for name in ("tom", "sue", "sam"):
        chooses(gate.people[name], email={Risk.HIGH: "never"})
    chooses(gate.rita, per_hour=2)


def opened(gate: Gate, count: int, prefix: str = "C") -> list[ApprovalRequest]:
    made = [propose(gate.agent, customer=f"{prefix}-{n}").request for n in range(count)]
    drain("request.opened")
    return made


def subjects() -> list[str]:
    return [one.subject.partition(":")[0] for one in mail.outbox]


def an_hour_later() -> None:
    """What was sent was sent long ago, and what waits is due."""
    sent = Notice.objects.filter(sent_at__isnull=False)
    sent.update(sent_at=clock.now() - timedelta(hours=2))
    time_comes()


def test_what_comes_beyond_is_one_mail_and_one_promise(gate: Gate) -> None:
    opened(gate, 6)
    assert subjects() == [OPENED] * 2
    assert OutboxMessage.objects.filter(topic=DIGEST).count() == 1
    assert not OutboxMessage.objects.filter(topic="notice.due").exists()
    an_hour_later()
    assert subjects()[2:] == ["4 requests need your decision"]
    assert not Notice.objects.filter(sent_at=None).exists()


def test_it_comes_when_the_first_of_the_hour_is_an_hour_old(gate: Gate) -> None:
    opened(gate, 4)
    first = Notice.objects.filter(sent_at__isnull=False).earliest("sent_at")
    due = set(Notice.objects.filter(sent_at=None).values_list("due_at", flat=True))
    assert first.sent_at is not None
    assert due == {first.sent_at + send_times.HOUR}
    (promised,) = OutboxMessage.objects.filter(topic=DIGEST)
    assert {promised.due_at} == due


def test_what_comes_beyond_costs_little(
    gate: Gate, django_assert_max_num_queries: Any
) -> None:
    """In a flood nearly everything does, and it is all that a worker would do."""
    opened(gate, 3)
    request = propose(gate.agent, customer="one more").request
    rita = gate.rita.public_id
    with django_assert_max_num_queries(14):  # one of them: which policy is in force
        people = plan.select_deciders(request, roles=(Role.REVIEWER,), only=rita)
        plan.notify_people(people, "opened")
    assert Notice.objects.get(request=request).digest


def test_what_comes_beyond_costs_for_all_what_it_costs_for_one(gate: Gate) -> None:
    for name in ("tom", "sue", "sam"):
        chooses(gate.people[name], email={Risk.HIGH: "now"}, per_hour=2)
    opened(gate, 3)
    costs, rita = [], gate.rita.public_id
    for number, only in enumerate((rita, None)):
        request = propose(gate.agent, customer=f"more-{number}").request
        with CaptureQueriesContext(connection) as asked:
            people = plan.select_deciders(request, roles=tuple(Role), only=only)
            plan.notify_people(people, "opened")
        costs.append(len(asked))
    assert Notice.objects.filter(request=request, digest=True).count() == 4
    assert costs[0] == costs[1]


def test_many_in_one_mail_count_as_one(gate: Gate) -> None:
    opened(gate, 5)
    an_hour_later()
    opened(gate, 2, "D")
    assert subjects()[2:] == ["3 requests need your decision", OPENED]


def test_what_is_over_meanwhile_is_not_in_it(gate: Gate) -> None:
    *_, decided, waiting = opened(gate, 4)
    decide(decided, gate.tom, "reject")
    an_hour_later()
    assert subjects()[2:] == ["1 request needs your decision"]
    assert waiting.pk in mail.outbox[-1].body
    assert Notice.objects.get(person=gate.rita, request=decided).let_go == "settled"


def test_of_very_many_the_rest_is_a_number(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MAX_MAIL_LINES", 2)
    beyond = opened(gate, 7)[2:]
    an_hour_later()
    (one,) = mail.outbox[2:]
    assert one.subject == "5 requests need your decision"
    assert "And 3 more: " in one.body
    assert sum(request.pk in one.body for request in beyond) == 2
    assert not Notice.objects.filter(sent_at=None).exists()


@pytest.mark.django_db(transaction=True)
def test_who_is_stopped_on_the_way_has_less_to_do_the_next_time(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "UPDATE_CHUNK", 2)
    for request in opened(gate, 8)[2:6]:
        decide(request, gate.tom, "reject")
    Notice.objects.filter(sent_at=None).update(due_at=clock.now())
    settled = Notice.objects.filter(person=gate.rita, let_go="settled")
    with connection.execute_wrapper(TimeIsUp()), pytest.raises(SoftTimeLimitExceeded):
        delivery.send_digest(gate.rita.public_id)
    assert settled.count() == 2
    assert delivery.send_digest(gate.rita.public_id)
    assert settled.count() == 4
    assert subjects()[2:] == ["2 requests need your decision"]


@pytest.mark.django_db(transaction=True)
def test_what_comes_while_it_is_written_is_in_the_next(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was planned before, by the clock, and committed after."""
    opened(gate, 3)
    late = propose(gate.agent, customer="late").request
    send = email.send_digest_mail

    def write(*given: Any) -> str:
        monkeypatch.undo()
        about = {"request": late, "version": late.version, "kind": "opened"}
        long_ago = {"at": clock.now(), "due_at": clock.now() - send_times.HOUR}
        Notice.objects.create(person=gate.rita, **about, **long_ago, digest=True)
        return send(*given)

    Notice.objects.filter(sent_at=None).update(due_at=clock.now())
    monkeypatch.setattr(email, "send_digest_mail", write)
    for _ in range(2):
        assert delivery.send_digest(gate.rita.public_id)
    assert [late.pk in one.body for one in mail.outbox[2:]] == [False, True]


@pytest.mark.django_db(transaction=True)
def test_two_who_write_at_once_send_one(gate: Gate) -> None:
    opened(gate, 5)
    Notice.objects.filter(sent_at=None).update(due_at=clock.now())
    sent = at_once(*[partial(delivery.send_digest, gate.rita.public_id)] * 6)
    assert [one.value for one in sent].count(True) == 1
    assert subjects()[2:] == ["3 requests need your decision"]


class TimeIsUp:
    """Stops a task before its second change to messages."""

    def __init__(self) -> None:
        self.changes = 0

    def __call__(self, execute: Any, sql: str, *rest: Any) -> Any:
        self.changes += sql.startswith('UPDATE "reviews_notice"')
        if self.changes > 1:
            raise SoftTimeLimitExceeded
        return execute(sql, *rest)


def test_it_waits_out_the_quiet_hours(gate: Gate) -> None:
    at = (clock.now() + timedelta(minutes=30)).time()
    until = (clock.now() + timedelta(hours=3)).time()
    opened(gate, 2)
    chooses(gate.rita, per_hour=2, quiet_from=at, quiet_until=until)
    opened(gate, 1, "D")
    assert Notice.objects.get(sent_at=None).due_at.time() == minute(until)


def minute(of: time) -> time:
    return of.replace(second=0, microsecond=0)


def test_who_left_meanwhile_gets_nothing(gate: Gate) -> None:
    opened(gate, 4)
    gate.rita.is_active = False
    gate.rita.save()
    an_hour_later()
    assert subjects()[2:] == []
    assert set(
        Notice.objects.filter(sent_at=None).values_list("let_go", flat=True)
    ) == {"not_theirs"}

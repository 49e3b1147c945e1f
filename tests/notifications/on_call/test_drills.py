"""A drill asks the people on call, its link tells by which message they came, and no
statistic of requests counts it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core import mail

from desk.on_call.results import build_results
from journal import clock
from journal.errors import Conflict, NotFound, NotPermitted
from journal.models import LogRecord
from notifications import delivery
from notifications.on_call import drills, shifts
from policies.choices import Risk
from policies.models import Queue
from reviews.models import DrillSighting, MetricRollup, Notice, NotificationDrill
from stats import rollups
from tests.conftest import Gate
from tests.factories import propose
from tests.hitl.tasks.draining import drain

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue(gate: Gate) -> Queue:
    return propose(gate.agent).request.queue


def start(gate: Gate, queue: Queue) -> NotificationDrill:
    drill = drills.start_drill(person=gate.sue, queue=queue, risk=Risk.HIGH)
    drain("drill.started")
    return drill


def put_on_call(gate: Gate, queue: Queue, *names: str) -> None:
    now = clock.now()
    for name in names:
        shifts.plan_shift(
            by=gate.sue,
            queue=queue,
            person=gate.people[name],
            begins_at=now - timedelta(hours=1),
            ends_at=now + timedelta(hours=8),
        )


def test_it_asks_the_people_on_call_and_is_marked_as_a_drill(
    gate: Gate, queue: Queue
) -> None:
    put_on_call(gate, queue, "tom", "sam")
    drill = start(gate, queue)
    assert drill.on_call
    assert {one.to[0] for one in mail.outbox} == {"tom@example.com", "sam@example.com"}
    for one in mail.outbox:
        assert one.subject.startswith("Drill: no request waits in ")
        assert "This is a drill: no request waits." in one.body
        assert f"/drills/{drill.pk}/?by=email\n" in one.body


def test_it_asks_all_who_decide_when_nobody_is_on_call(
    gate: Gate, queue: Queue
) -> None:
    drill = start(gate, queue)
    assert not drill.on_call
    assert set(drill.people) >= {gate.rita.public_id, gate.sue.public_id}
    assert len(mail.outbox) == len(drill.people)


def test_only_a_supervisor_starts_one_and_once_an_hour(
    gate: Gate, queue: Queue
) -> None:
    for other in (gate.rita, gate.adam, gate.otto):
        with pytest.raises(NotPermitted):
            drills.start_drill(person=other, queue=queue, risk=Risk.HIGH)
    drill = start(gate, queue)
    with pytest.raises(Conflict, match="less than an hour ago"):
        start(gate, queue)
    earlier = clock.now() - timedelta(minutes=61)
    NotificationDrill.objects.filter(pk=drill.pk).update(started_at=earlier)
    assert start(gate, queue).pk != drill.pk


def test_the_first_click_is_recorded_with_its_channel(gate: Gate, queue: Queue) -> None:
    drill = start(gate, queue)
    NotificationDrill.objects.filter(pk=drill.pk).update(
        started_at=clock.now() - timedelta(seconds=40)
    )
    for channel in ("email", "nonsense"):
        drills.record_sighting(drill_id=drill.pk, person=gate.rita, channel=channel)
    drills.record_sighting(drill_id=drill.pk, person=gate.tom, channel="nonsense")
    with pytest.raises(NotPermitted):
        drills.record_sighting(drill_id=drill.pk, person=gate.otto)
    with pytest.raises(NotFound):
        drills.record_sighting(drill_id=drill.pk, person=gate.owen)
    rows = DrillSighting.objects.order_by("pk").values_list("person", "channel")
    assert list(rows) == [(gate.rita.pk, "email"), (gate.tom.pk, "")]
    kinds = LogRecord.objects.filter(kind__startswith="drill.").values_list("kind")
    assert sorted(kind for (kind,) in kinds) == [
        *("drill.seen", "drill.seen", "drill.started"),
    ]
    drill = NotificationDrill.objects.select_related("queue").get(pk=drill.pk)
    (result,) = build_results([drill], clock.now())
    assert (result.seen, result.people) == (2, len(drill.people))
    found = {one.title: one for one in result.channels}
    mails = found["Mail"]
    assert (mails.sent, mails.delivered) == (len(drill.people), len(drill.people))
    assert (mails.held, mails.seen) == (0, 1)
    assert mails.median.endswith(" s")
    assert int(mails.median.removesuffix(" s")) >= 40


def test_what_is_over_records_and_sends_nothing(gate: Gate, queue: Queue) -> None:
    drill = drills.start_drill(person=gate.sue, queue=queue, risk=Risk.HIGH)
    past = clock.now() - timedelta(seconds=1)
    NotificationDrill.objects.filter(pk=drill.pk).update(ends_at=past)
    drain("drill.started")
    assert mail.outbox == []
    with pytest.raises(Conflict, match="is over"):
        drills.record_sighting(drill_id=drill.pk, person=gate.rita, channel="email")
    assert not DrillSighting.objects.exists()


def test_a_held_message_is_dropped_when_the_drill_is_over(
    gate: Gate, queue: Queue
) -> None:
    drill = start(gate, queue)
    notices = Notice.objects.filter(drill=drill)
    past = clock.now() - timedelta(seconds=1)
    notices.filter(person=gate.rita).update(
        sent_at=None, attempts=0, digest=True, due_at=past
    )
    NotificationDrill.objects.filter(pk=drill.pk).update(ends_at=past)
    assert not delivery.send_digest(gate.rita.public_id)
    assert notices.get(person=gate.rita).let_go == "settled"
    (result,) = build_results([drill], clock.now())
    assert [(one.sent, one.held) for one in result.channels] == [
        (len(drill.people) - 1, 1)
    ]


def test_no_statistic_counts_a_drill(gate: Gate, queue: Queue) -> None:
    def compute() -> list[tuple[str, ...]]:
        rollups.mark_changed_days(now=clock.now())
        assert rollups.compute_day(day=clock.now().date())
        rows = MetricRollup.objects.values_list("measure", "tool", "risk", "bins")
        return sorted(rows.exclude(measure__startswith="queue_"))

    before = compute()
    assert before
    drill = start(gate, queue)
    drills.record_sighting(drill_id=drill.pk, person=gate.rita, channel="email")
    assert compute() == before

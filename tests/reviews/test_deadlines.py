from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from structlog.testing import capture_logs

from journal import clock, errors
from journal.models import LogRecord, OutboxMessage
from policies.models import Observation
from reviews import deadlines
from reviews.choices import ExecutionStatus, RequestStatus, Scope, StopMode
from reviews.decisions import recall
from reviews.holds import rows, take
from reviews.models import ApprovalRequest, Execution, Grant
from reviews.stops import incidents, stops
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states
from tests.reviews.stops import test_incidents


def patient(gate: Gate) -> None:
    """The same policy with a recall window of ten seconds."""
    document = factories.document_of_tests()
    document["recall"] = {"low": 10, "medium": 10, "high": 10, "critical": 0}
    factories.policy(gate.people, document)


def window_over(request: ApprovalRequest) -> None:
    past = clock.now() - timedelta(seconds=1)
    ApprovalRequest.objects.filter(pk=request.pk).update(recall_until=past)


def test_at_its_deadline_a_request_expires_and_weighs_no_more(gate: Gate) -> None:
    request = propose(gate.agent).request
    factories.overdue(request)
    assert deadlines.expire_chunk() == [request.proposal_id]
    request.refresh_from_db()
    assert request.status == RequestStatus.EXPIRED
    assert not Observation.objects.filter(counts=True).exists()
    assert LogRecord.objects.filter(kind="request.expired").count() == 1
    assert OutboxMessage.objects.filter(topic="request.settled").count() == 1


def test_many_expire_in_as_many_statements_as_one(gate: Gate) -> None:
    assert expiring(gate, 1) == expiring(gate, 12)


def expiring(gate: Gate, count: int) -> int:
    for number in range(count):
        customer = f"C-{count}-{number}"
        factories.overdue(propose(gate.agent, customer=customer).request)
    with CaptureQueriesContext(connection) as taken:
        assert len(deadlines.expire_chunk()) == count
    return len(taken)


def test_before_its_deadline_nothing_expires(gate: Gate) -> None:
    propose(gate.agent)
    assert deadlines.expire_chunk() == []


def test_expiry_grants_nothing(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue)
    factories.overdue(request)
    deadlines.expire_chunk()
    assert not Execution.objects.exists()


def test_an_approval_is_held_and_then_authorised(gate: Gate) -> None:
    patient(gate)
    request = propose(gate.agent).request
    decide(request, gate.rita)
    request.refresh_from_db()
    assert request.status == RequestStatus.RECALLABLE
    assert deadlines.close_recall_windows() == []
    window_over(request)
    assert deadlines.close_recall_windows() == [request.proposal_id]
    assert Execution.objects.get().status == ExecutionStatus.QUEUED


def test_many_windows_close_in_as_many_statements_as_one(gate: Gate) -> None:
    patient(gate)
    assert closing(gate, 1) == closing(gate, 12)
    assert Execution.objects.count() == 13


def closing(gate: Gate, count: int) -> int:
    for number in range(count):
        request = propose(gate.agent, customer=f"C-{count}-{number}").request
        decide(request, gate.rita)
    past = clock.now() - timedelta(seconds=1)
    held = ApprovalRequest.objects.filter(status=RequestStatus.RECALLABLE)
    held.update(recall_until=past)
    with CaptureQueriesContext(connection) as taken:
        assert len(deadlines.close_recall_windows()) == count
    return len(taken)


def test_a_recalled_approval_is_asked_again(gate: Gate) -> None:
    patient(gate)
    request = propose(gate.agent).request
    decide(request, gate.rita)
    recall.recall_approval(request_id=request.pk, person=gate.rita)
    request.refresh_from_db()
    assert (request.status, request.version) == (RequestStatus.PENDING, 2)
    decide(request, gate.rita)


def test_after_the_window_nothing_is_recalled(gate: Gate) -> None:
    patient(gate)
    request = propose(gate.agent).request
    decide(request, gate.rita)
    window_over(request)
    with pytest.raises(errors.AlreadyRunning):
        recall.recall_approval(request_id=request.pk, person=gate.rita)


def test_only_who_approved_or_a_supervisor_recalls(gate: Gate) -> None:
    patient(gate)
    request = propose(gate.agent).request
    decide(request, gate.rita)
    with pytest.raises(errors.NotPermitted):
        recall.recall_approval(request_id=request.pk, person=gate.tom)
    recall.recall_approval(request_id=request.pk, person=gate.sue)


def test_what_is_recallable_can_still_be_rejected(gate: Gate) -> None:
    patient(gate)
    request = propose(gate.agent).request
    decide(request, gate.rita)
    decide(request, gate.tom, "reject")
    request.refresh_from_db()
    assert request.status == RequestStatus.REJECTED


def test_a_recallable_request_does_not_expire(gate: Gate) -> None:
    patient(gate)
    request = propose(gate.agent).request
    decide(request, gate.rita)
    factories.overdue(request)
    assert deadlines.expire_chunk() == []


def test_a_reminder_is_promised_once(gate: Gate) -> None:
    request = propose(gate.agent).request
    assert deadlines.enqueue_reminders() == 0
    soon = clock.now() + timedelta(seconds=10)
    early = soon - timedelta(minutes=30)
    ApprovalRequest.objects.filter(pk=request.pk).update(
        opened_at=early, expires_at=soon
    )
    assert deadlines.enqueue_reminders() == 1
    assert deadlines.enqueue_reminders() == 0


def test_half_time_is_told_once_and_not_while_somebody_holds_it(gate: Gate) -> None:
    held, free = (
        propose(gate.agent, customer=f"C-{number}").request for number in range(2)
    )
    take.take_hold(request_id=held.pk, person=gate.rita)
    past = F("opened_at") - (F("expires_at") - F("opened_at")) * 1.5
    ApprovalRequest.objects.update(opened_at=past)
    assert [deadlines.enqueue_reminders() for _ in range(2)] == [1, 0]
    (told,) = OutboxMessage.objects.filter(topic="request.half_time")
    assert told.subject == free.pk
    rows.release_hold(request_id=held.pk, person=gate.rita)
    assert deadlines.enqueue_reminders() == 1


def test_what_no_worker_is_on_is_named(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita)
    quiet = timedelta(seconds=0)
    execution = Execution.objects.get()
    assert deadlines.list_overdue_executions(quiet=quiet) == [execution.pk]
    assert deadlines.list_lapsed_executions() == []


@pytest.mark.parametrize(
    ("scope", "key"),
    [
        (Scope.AGENT, "riley"),
        (Scope.THREAD, "riley/t-1"),
        (Scope.TOOL, "tag"),
        (Scope.EVERYTHING, ""),
    ],
)
def test_what_is_paused_does_not_stand_before_the_others(
    gate: Gate, scope: Scope, key: str
) -> None:
    robin = factories.agent(gate.owen, "robin")
    paused = propose(gate.agent, "tag").executions.get()
    other = propose(robin, "look", thread="t-2").executions.get()
    row = stops.create_stop(
        scope=scope, key=key, mode=StopMode.PAUSED, person=gate.adam, reason="look"
    )
    named = deadlines.list_overdue_executions(quiet=timedelta())
    assert named == ([] if scope is Scope.EVERYTHING else [other.pk])
    Grant.objects.filter(pk=paused.grant_id).update(expires_at=clock.now())
    assert paused.pk in deadlines.list_overdue_executions(quiet=timedelta())
    worlds.rewrite(Grant, paused.grant_id, expires_at=other.grant.expires_at)
    stops.lift_stop(stop_id=row.pk, person=gate.alma, reason="go on")
    if scope is Scope.EVERYTHING:
        stops.lift_stop(stop_id=row.pk, person=gate.sue, reason="go on")
    assert set(deadlines.list_overdue_executions(quiet=timedelta())) == {
        paused.pk,
        other.pk,
    }


def test_an_extension_gives_the_rules_own_time_once_more(gate: Gate) -> None:
    request = propose(gate.agent).request
    before = request.expires_at
    deadlines.extend_deadline(request_id=request.pk, person=gate.rita)
    request.refresh_from_db()
    assert request.expires_at == before + timedelta(minutes=30)
    assert (request.version, request.reminded_at) == (1, None)
    record = LogRecord.objects.get(kind="request.extended")
    assert record.actor_id == gate.rita.public_id
    assert request.expires_at.isoformat().encode() in bytes(record.leaf)


def test_the_policys_most_is_never_passed(gate: Gate) -> None:
    request = propose(gate.agent).request
    almost = request.expires_at_most - timedelta(minutes=1)
    ApprovalRequest.objects.filter(pk=request.pk).update(expires_at=almost)
    deadlines.extend_deadline(request_id=request.pk, person=gate.rita)
    request.refresh_from_db()
    assert request.expires_at == request.expires_at_most
    with pytest.raises(errors.Conflict, match="no more time"):
        deadlines.extend_deadline(request_id=request.pk, person=gate.rita)


@pytest.mark.parametrize("name", ["otto", "adam", "owen"])
def test_who_may_not_decide_gives_no_time(gate: Gate, name: str) -> None:
    request = propose(gate.agent).request
    with pytest.raises(errors.NotPermitted):
        deadlines.extend_deadline(request_id=request.pk, person=gate.people[name])


def test_nothing_is_brought_back_by_an_extension(gate: Gate) -> None:
    request = propose(gate.agent).request
    factories.overdue(request)
    with pytest.raises(errors.RequestExpired):
        deadlines.extend_deadline(request_id=request.pk, person=gate.rita)
    deadlines.expire_chunk()
    with pytest.raises(errors.AlreadyDecided):
        deadlines.extend_deadline(request_id=request.pk, person=gate.rita)


def test_a_claim_that_a_pause_keeps_stands_before_no_other(gate: Gate) -> None:
    """But what can be looked up is, under any switch."""
    kept, looked = states.claimed(gate), states.claimed(gate, "pay_queryable")
    for execution in (kept, looked):
        factories.lapsed(execution)
    assert set(deadlines.list_lapsed_executions()) == {kept.pk, looked.pk}
    row = stops.create_stop(
        scope=Scope.AGENT,
        key="riley",
        mode=StopMode.PAUSED,
        person=gate.sue,
        reason="look first",
    )
    assert deadlines.list_lapsed_executions() == [looked.pk]
    past = clock.now() - timedelta(seconds=1)
    Grant.objects.filter(pk=kept.grant_id).update(expires_at=past)
    assert set(deadlines.list_lapsed_executions()) == {kept.pk, looked.pk}
    later = clock.now() + timedelta(minutes=5)
    for one in (kept, looked):
        worlds.rewrite(Grant, one.grant_id, expires_at=later)
    stops.lift_stop(stop_id=row.pk, person=gate.sue, reason="go on")
    assert set(deadlines.list_lapsed_executions()) == {kept.pk, looked.pk}


BREAK = """
CREATE FUNCTION test_break() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.id = '{}' THEN RAISE EXCEPTION 'not this one'; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER test_break BEFORE UPDATE ON reviews_approvalrequest
FOR EACH ROW EXECUTE FUNCTION test_break();
"""


def test_a_request_that_cannot_expire_keeps_no_other_back(gate: Gate) -> None:
    requests = [propose(gate.agent, customer=f"C-{n}").request for n in range(3)]
    for request in requests:
        factories.overdue(request)
    with connection.cursor() as cursor:
        cursor.execute(BREAK.format(requests[1].pk))
    expired = deadlines.expire_chunk()
    assert set(expired) == {requests[0].proposal_id, requests[2].proposal_id}
    statuses = {one.pk: one.status for one in ApprovalRequest.objects.all()}
    assert statuses[requests[1].pk] == RequestStatus.PENDING
    assert LogRecord.objects.filter(kind="request.expired").count() == 2


def test_a_window_that_cannot_close_keeps_no_other_back(gate: Gate) -> None:
    patient(gate)
    requests = [propose(gate.agent, customer=f"C-{n}").request for n in range(3)]
    for request in requests:
        decide(request, gate.rita)
        window_over(request)
    with connection.cursor() as cursor:
        cursor.execute(BREAK.format(requests[1].pk))
    closed = deadlines.close_recall_windows()
    assert set(closed) == {requests[0].proposal_id, requests[2].proposal_id}
    assert Execution.objects.count() == Grant.objects.count() == 2


def test_a_request_without_reminder_keeps_no_other_back(gate: Gate) -> None:
    requests = [propose(gate.agent, customer=f"C-{n}").request for n in range(3)]
    for request in requests:
        ApprovalRequest.objects.filter(pk=request.pk).update(
            opened_at=clock.now() - timedelta(hours=9),
            expires_at=clock.now() + timedelta(minutes=5),
        )
    with connection.cursor() as cursor:
        cursor.execute(BREAK.format(requests[1].pk))
    with capture_logs() as logged:
        assert deadlines.enqueue_reminders() == 2
        assert deadlines.enqueue_reminders() == 0
    sent = OutboxMessage.objects.filter(topic="request.due_soon")
    assert {one.subject for one in sent} == {requests[0].pk, requests[2].pk}
    # Once as near its deadline, once as past half of its time.
    named = [(one["operation"], one["row"]) for one in logged]
    assert len(named) == len(set(named)) == 2
    assert {row for _, row in named} == {requests[1].pk}


def test_a_frozen_deadline_that_cannot_move_keeps_no_other_back(gate: Gate) -> None:
    requests = [propose(gate.agent, customer=f"C-{n}").request for n in range(3)]
    test_incidents.declare(gate)
    with connection.cursor() as cursor:
        cursor.execute(BREAK.format(requests[1].pk))
    moved = incidents.advance_frozen_deadlines()
    assert set(moved) == {requests[0].pk, requests[2].pk}
    assert incidents.advance_frozen_deadlines() == []

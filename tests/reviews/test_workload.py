"""More time and more hands for all that is urgent: bounded, on record, and never past
what each request allows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from guardian.shortcuts import remove_perm

from desk.workload import page
from journal import clock, errors
from journal.models import LogRecord
from policies.models import Queue
from reviews import workload
from reviews.holds import take
from reviews.models import ApprovalRequest
from tests import factories
from tests.conftest import Gate
from tests.desk.components.test_visibility import fresh
from tests.factories import decide, propose

SOON = timedelta(minutes=10)


def waiting(gate: Gate, count: int) -> list[ApprovalRequest]:
    """So many letters that expire in ten minutes."""
    found = []
    for number in range(count):
        letter = {"to": f"friend {number}", "text": "hello"}
        request = propose(gate.agent, "write", args=letter).request
        later = clock.now() + SOON + timedelta(seconds=number)
        ApprovalRequest.objects.filter(pk=request.pk).update(expires_at=later)
        found.append(request)
    return found


def due(gate: Gate) -> list[str]:
    return page.list_due_requests(fresh(gate.sue), clock.now())


def test_all_that_expire_soon_get_more_time_and_a_record_each(gate: Gate) -> None:
    requests = waiting(gate, 3)
    far = propose(gate.agent).request
    later = clock.now() + timedelta(minutes=31)
    ApprovalRequest.objects.filter(pk=far.pk).update(expires_at=later)
    wanted = due(gate)
    assert wanted == [one.pk for one in requests]  # the first to expire first
    assert workload.extend_deadlines(request_ids=wanted, person=gate.sue) == 3
    extended = LogRecord.objects.filter(kind="request.extended")
    assert set(extended.values_list("request", flat=True)) == set(wanted)
    assert due(gate) == []
    far.refresh_from_db()
    assert far.expires_at == later


def test_what_was_decided_meanwhile_is_passed_over(gate: Gate) -> None:
    first, second = waiting(gate, 2)
    wanted = due(gate)
    decide(first, gate.rita, "reject")
    assert workload.extend_deadlines(request_ids=wanted, person=gate.sue) == 1
    second.refresh_from_db()
    assert second.expires_at > clock.now() + SOON


def test_what_has_no_more_time_is_not_asked_for_it(gate: Gate) -> None:
    (request,) = waiting(gate, 1)
    most = ApprovalRequest.objects.filter(pk=request.pk)
    most.update(expires_at_most=clock.now() + SOON, expires_at=clock.now() + SOON / 2)
    assert due(gate) == [request.pk]
    workload.extend_deadlines(request_ids=due(gate), person=gate.sue)
    assert due(gate) == []


def test_no_press_moves_more_than_its_bound(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload, "MAX_EXTENDED", 2)
    waiting(gate, 3)
    assert workload.extend_deadlines(request_ids=due(gate), person=gate.sue) == 2


def test_the_most_urgent_that_nobody_is_at_are_given(gate: Gate) -> None:
    requests = waiting(gate, 8)
    take.take_hold(request_id=requests[0].pk, person=gate.rita)
    now = clock.now()
    wanted = page.list_requests_to_give(fresh(gate.sue), fresh(gate.tom), now)
    assert wanted == [one.pk for one in requests[1:6]]
    given = workload.assign_requests(request_ids=wanted, person=gate.sue, to=gate.tom)
    assert given == workload.MAX_ASSIGNED
    assert ApprovalRequest.objects.filter(assignee=gate.tom).count() == 5
    assert LogRecord.objects.filter(kind="request.assigned").count() == 5
    again = page.list_requests_to_give(fresh(gate.sue), fresh(gate.tom), now)
    assert again == [requests[6].pk, requests[7].pk]


def test_nothing_is_given_to_whom_it_is_not_open(gate: Gate) -> None:
    waiting(gate, 1)
    propose(gate.agent, amount="899.00")  # for supervisors
    remove_perm("policies.decide", gate.tom, Queue.objects.get(name="mail"))
    assert (
        page.list_requests_to_give(fresh(gate.sue), fresh(gate.tom), clock.now()) == []
    )


@pytest.mark.parametrize("name", ["rita", "adam", "otto", "owen"])
def test_only_supervisors_do_it(gate: Gate, name: str) -> None:
    person = gate.people[name]
    with pytest.raises(errors.NotPermitted):
        workload.extend_deadlines(request_ids=[], person=person)
    with pytest.raises(errors.NotPermitted):
        workload.assign_requests(request_ids=[], person=person, to=gate.tom)
    for ask in (
        lambda: page.list_due_requests(person, clock.now()),
        lambda: page.build_workload_page(person, clock.now()),
    ):
        with pytest.raises(errors.NotFound):
            ask()


def test_who_could_help_is_listed_and_who_is_there(gate: Gate) -> None:
    (request,) = waiting(gate, 1)
    take.take_hold(request_id=request.pk, person=gate.rita)
    workload.assign_requests(request_ids=[request.pk], person=gate.sue, to=gate.tom)
    gate.sam.is_active = False
    gate.sam.save()
    people = page.build_workload_page(fresh(gate.sue), clock.now()).people
    assert [(str(one.person), one.here, one.given) for one in people] == [
        ("Tom Example", False, 1),
        ("Rita Example", True, 0),
    ]


def test_who_asks_the_most_stands_first(gate: Gate) -> None:
    robin = factories.agent(gate.owen, "robin")
    propose(robin, "write")
    waiting(gate, 2)
    ApprovalRequest.objects.filter(agent="robin").update(
        opened_at=clock.now() - timedelta(hours=1)
    )
    found = page.build_workload_page(fresh(gate.sue), clock.now()).asking
    assert [(one.agent, one.waiting, one.fresh) for one in found] == [
        ("riley", 2, 2),
        ("robin", 1, 0),
    ]


def test_no_more_queries_however_much_waits(
    gate: Gate, django_assert_num_queries
) -> None:
    for _ in range(3):
        waiting(gate, 2)
        propose(factories.agent(gate.owen, f"a-{ApprovalRequest.objects.count()}"))
        with django_assert_num_queries(14):
            page.build_workload_page(fresh(gate.sue), clock.now())

"""What waits for people who are not there raises an alarm, whatever made it so, and the
alarm closes itself once enough people can decide again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group
from django.core import mail
from django.test import Client
from guardian.shortcuts import remove_perm
from pytest_django import DjangoAssertNumQueries

from policies.choices import Role
from policies.models import Person, Queue
from reviews.alarms import standing as alarms
from reviews.alarms import watch
from reviews.alarms.wording import describe_alarm
from reviews.choices import AlarmKind, Scope
from reviews.governance import voters
from reviews.models import Alarm, ApprovalRequest
from reviews.stops import stops
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.hitl.tasks.draining import drain

TEXT = describe_alarm(AlarmKind.UNDECIDABLE)

BACKEND = "django.contrib.auth.backends.ModelBackend"


def asked(gate: Gate) -> ApprovalRequest:
    """A payment that needs two supervisors, of whom there are two."""
    return propose(gate.agent, amount="899.00").request


def standing() -> list[tuple[str, str, int]]:
    found = Alarm.objects.exclude(status="closed").order_by("pk")
    return list(found.values_list("kind", "subject", "times"))


def page(request: ApprovalRequest, person: Person) -> str:
    client = Client()
    client.force_login(person, BACKEND)
    return client.get(f"/requests/{request.pk}/").content.decode()


def deactivate(gate: Gate) -> None:
    Person.objects.filter(pk=gate.sam.pk).update(is_active=False)


def lose_role(gate: Gate) -> None:
    gate.sam.groups.remove(Group.objects.get(name=Role.SUPERVISOR))


def audit(gate: Gate) -> None:
    gate.sam.groups.add(Group.objects.get(name=Role.AUDITOR))


def leave_queue(gate: Gate) -> None:
    remove_perm("policies.decide", gate.sam, Queue.objects.get(name="money"))


def stop(gate: Gate) -> None:
    key = gate.sam.public_id
    stops.create_stop(scope=Scope.REVIEWER, key=key, person=gate.adam, reason="away")


def limit(gate: Gate) -> None:
    Person.objects.filter(pk=gate.sam.pk).update(
        ceiling_minor=50000, ceiling_currency="USD"
    )


WAYS = [deactivate, lose_role, audit, leave_queue, stop, limit]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_who_is_missing_raises_it_whatever_the_cause(
    gate: Gate, way: Callable[[Gate], None]
) -> None:
    request = asked(gate)
    propose(gate.agent, "write", thread="t-2")  # anybody may decide this one
    assert watch.sweep_alarms() == 0
    way(gate)
    assert watch.sweep_alarms() == 1
    assert standing() == [("undecidable", request.pk, 1)]
    alarm = Alarm.objects.get()
    assert alarm.data == {"version": 1, "lacking": "1 of 2 supervisors"}
    assert alarm.queue is not None
    assert watch.sweep_alarms() == 0
    source = page(request, gate.sue)
    assert "Only 1 of 2 supervisors can decide this." in source


def test_its_supervisors_are_told_once(gate: Gate) -> None:
    asked(gate)
    deactivate(gate)
    mail.outbox.clear()
    watch.sweep_alarms()
    drain("alarm.raised")
    watch.sweep_alarms()
    drain("alarm.raised")
    (sent,) = mail.outbox
    assert sent.to == [gate.sue.email]
    assert TEXT.title in f"{sent.subject} {sent.body}"


def test_a_vote_that_was_given_is_not_missed(gate: Gate) -> None:
    request = asked(gate)
    decide(request, gate.sam)
    deactivate(gate)
    assert watch.sweep_alarms() == 0


def test_it_closes_itself_once_enough_people_are_there(gate: Gate) -> None:
    asked(gate)
    deactivate(gate)
    watch.sweep_alarms()
    Person.objects.filter(pk=gate.sam.pk).update(is_active=True)
    assert watch.sweep_alarms() == 1
    assert Alarm.objects.get().closed_how == "itself"
    deactivate(gate)
    watch.sweep_alarms()
    assert len(standing()) == 1


def test_it_closes_itself_once_the_request_is_settled(gate: Gate) -> None:
    request = asked(gate)
    deactivate(gate)
    watch.sweep_alarms()
    decide(request, gate.sue, "reject")
    assert watch.sweep_alarms() == 1
    assert standing() == []


def test_who_closes_it_hears_of_this_version_no_more(gate: Gate) -> None:
    request = asked(gate)
    deactivate(gate)
    watch.sweep_alarms()
    alarm = Alarm.objects.get()
    alarms.close_alarm(alarm_id=alarm.pk, person=gate.sue, note="Sam is back at noon.")
    assert watch.sweep_alarms() == 0
    factories.revise(gate.agent, request.proposal, amount="898.00")
    assert watch.sweep_alarms() == 1


def test_without_a_supervisor_in_its_queue_it_is_everybodys(gate: Gate) -> None:
    asked(gate)
    money = Queue.objects.get(name="money")
    for person in (gate.sue, gate.sam):
        remove_perm("policies.decide", person, money)
    watch.sweep_alarms()
    assert Alarm.objects.get().queue is None


def test_its_page_says_what_it_is_and_what_to_do(gate: Gate) -> None:
    asked(gate)
    deactivate(gate)
    watch.sweep_alarms()
    client = Client()
    client.force_login(gate.sue, BACKEND)
    source = client.get(f"/alarms/{Alarm.objects.get().pk}/").content.decode()
    assert TEXT.title in source
    assert "1 of 2 supervisors" in source
    assert TEXT.do in source


def test_any_number_of_requests_takes_the_same_queries(
    gate: Gate, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        propose(gate.agent, customer=f"C-{number}", thread=f"t-{number}")
    with django_assert_max_num_queries(4):
        assert list(voters.list_undecidable_requests()) == []

"""Who may decide where; the operations' tests show what follows."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission
from guardian.shortcuts import assign_perm, get_objects_for_user, remove_perm
from pytest_django import DjangoAssertNumQueries

from journal import errors
from policies import staffing
from policies.choices import Role
from policies.models import Person, Queue
from reviews import permissions
from reviews.choices import RequestStatus
from reviews.people import preferences
from reviews.people.preferences import DisplayPreferences
from tests.conftest import Gate
from tests.factories import decide, propose


def _queues(name: str) -> frozenset[int]:
    return permissions.queues_of(Person.objects.get(username=name))


def test_people_and_roles_open_queues(gate: Gate) -> None:
    money, odd = (Queue.objects.get(name=name) for name in ("money", "odd"))
    reviewers = Group.objects.get(name="reviewer")
    for queue in Queue.objects.all():
        remove_perm("policies.decide", gate.rita, queue)
    assert _queues("rita") == frozenset()
    assign_perm("policies.decide", gate.rita, odd)
    assign_perm("policies.decide", reviewers, money)
    assign_perm("policies.decide", reviewers, odd)
    assert _queues("rita") == {money.pk, odd.pk}
    assert _queues("owen") == frozenset()


def test_preferences_come_with_the_roles(
    gate: Gate, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    preferences.save_preferences(
        person=gate.rita, display=DisplayPreferences(theme="dark")
    )
    rita, sue = (Person.objects.get(username=name) for name in ("rita", "sue"))
    for person, theme in ((rita, "dark"), (sue, "system")):
        with django_assert_num_queries(1):
            assert permissions.roles_of(person)
            assert preferences.load_preferences(person).display.theme == theme


def test_no_general_permission_opens_a_queue(gate: Gate) -> None:
    Person.objects.filter(username="otto").update(is_superuser=True)
    gate.otto.user_permissions.add(Permission.objects.get(codename="decide"))
    assert _queues("otto") == frozenset()


def test_it_is_what_guardian_says(gate: Gate) -> None:
    assign_perm(
        "policies.decide", Group.objects.get(name="auditor"), Queue.objects.first()
    )
    for person in Person.objects.all():
        found = get_objects_for_user(
            person, "policies.decide", klass=Queue, with_superuser=False
        )
        assert permissions.queues_of(person) == set(found.values_list("pk", flat=True))


def test_roles_are_the_groups_that_are_known(gate: Gate) -> None:
    gate.rita.groups.add(Group.objects.create(name="choir"))
    rita = Person.objects.get(username="rita")
    assert permissions.roles_of(rita) == {"reviewer"}


@pytest.mark.parametrize("role", sorted(staffing.NEVER_DECIDE))
def test_who_sets_the_rules_or_checks_them_decides_in_no_other_role(
    gate: Gate, role: str
) -> None:
    request = propose(gate.agent).request
    gate.sue.groups.add(Group.objects.get(name=role))
    sue = Person.objects.get(username="sue")
    assert permissions.roles_of(sue) == {Role.SUPERVISOR, role}
    with pytest.raises(errors.NotPermitted):
        decide(request, sue)
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING

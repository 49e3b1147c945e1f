"""What the groups of the identity provider let a person do here: the same whether a
sign-in says them or provisioning does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.conf import settings

from journal import log
from policies import people
from policies.choices import Role
from policies.group_access import GroupAccess, combine_access
from policies.models import Person, ProvisionedGroup, ProvisionedPerson, Queue
from policies.people import PersonChange
from reviews.choices import ChangeStatus

from .authority import is_narrower_role, load_authority

NOTHING = GroupAccess(role=Role.OWNER)  # of an agent, and this person owns none


def load_groups() -> Mapping[str, GroupAccess]:
    """What each group means here, by name: the setting OIDC_GROUPS."""
    groups: dict[str, GroupAccess] = settings.COUNTERSEAL.oidc_groups
    return groups


def read_provisioned_groups(person: Person) -> frozenset[str] | None:
    """The names of the person's groups that the provider keeps here; None where it does
    not keep this person, or keeps no groups at all."""
    rows = ProvisionedPerson.objects.filter(person=person, removed_at__isnull=True)
    if not rows.exists() or not ProvisionedGroup.objects.exists():
        return None
    groups = ProvisionedGroup.objects.filter(members__person=person)
    return frozenset(groups.values_list("name", flat=True))


def is_given_by_groups(person: Person) -> bool:
    """Whether the provider's groups give whatever the person may do, which may be
    nothing. Not while a change of it waits, nor for whom an administrator of the gate
    made the owner of an agent."""
    groups = ProvisionedGroup.objects.filter(members__person=person)
    names = groups.values_list("name", flat=True)
    given = combine_access(load_groups(), frozenset(names))
    access, now = given or NOTHING, load_authority(person)
    if person.authority_changes.filter(status=ChangeStatus.PROPOSED).exists():
        return False
    if person.agents.exists() and (given is None or given.role is not Role.OWNER):
        return False
    return is_narrower_role(access.role, now.role) and now.queues <= access.queues


def settle_access(
    person: Person, before: Collection[str], after: Collection[str], *, by: log.Actor
) -> None:
    """Put in force that the person's groups are `after`, and were `before`. Groups that
    mean nothing here change nothing; who leaves the last one that does may do nothing.
    Caller holds a transaction and the lock on the person."""
    access = combine_access(load_groups(), after)
    if access is not None:
        apply_access(person, access, by=by)
    elif combine_access(load_groups(), before) is not None:
        apply_access(person, NOTHING, by=by)


def apply_access(person: Person, access: GroupAccess, *, by: log.Actor) -> None:
    """Give the person this role and these queues, and take the others away. Caller
    holds a transaction."""
    present = load_authority(person)
    if access.role is not present.role:
        change: Any = PersonChange(role=access.role)
        people.apply_change(person, change, by=by)
    wanted = Queue.objects.filter(name__in=access.queues - present.queues)
    people.admit(person, wanted, by)
    left = Queue.objects.filter(name__in=present.queues - access.queues)
    people.dismiss(person, left, by)

"""Groups as an identity provider keeps them over SCIM 2.0. A group gives its members
what the setting OIDC_GROUPS says of its name, as it does at a sign-in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from django.db import IntegrityError
from django.db.models import QuerySet

from journal import clock, log, transactions
from journal.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    build_field_error,
)
from journal.operations import operation
from policies.models import (
    Person,
    ProvisionedGroup,
    ProvisionedMember,
    ProvisioningToken,
)
from reviews import locks

from . import group_authority
from .provisioning import LONGEST_ID, UNIQUE, select_users
from .provisioning_tokens import build_provider_actor

CHANGES = "ProvisionedGroup, ProvisionedMember, Person, QueueUserPermission"
OF_MEMBERS = "person.changed, person.admitted, person.dismissed"


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group as the provider describes it; `members` are public ids of people."""

    name: str
    external_id: str = ""
    members: frozenset[str] = frozenset()


def select_groups() -> QuerySet[ProvisionedGroup]:
    """Every group, in a fixed order."""
    return ProvisionedGroup.objects.order_by("pk")


def load_group(public_id: str) -> ProvisionedGroup:
    """The group with this id. Raises NotFound."""
    row = select_groups().filter(public_id=public_id).first()
    if row is None:
        raise NotFound(f"No group has the id {public_id[:40]}.")
    return row


def describe_group(group: ProvisionedGroup) -> GroupState:
    """The group as it is now."""
    members = group.members.values_list("person__public_id", flat=True)
    return GroupState(group.name, group.external_id, frozenset(members))


@operation(
    locks="people", writes=CHANGES, logs=f"provisioning.group_added, {OF_MEMBERS}"
)
def create_group(wanted: GroupState, *, token: ProvisioningToken) -> ProvisionedGroup:
    """Add a group. Raises InvalidInput, and Conflict for a name that another one
    has."""
    _check_name(wanted, None)
    group = ProvisionedGroup(name=wanted.name)
    _save_group(group, wanted)
    by = build_provider_actor(token)
    _set_members(group, GroupState(wanted.name), wanted, by)
    _log_group("provisioning.group_added", group, by, added=len(wanted.members))
    return group


@operation(
    locks="group, people",
    writes=CHANGES,
    logs=f"provisioning.group_changed, {OF_MEMBERS}",
)
def change_group(
    public_id: str,
    change: Callable[[GroupState], GroupState],
    *,
    token: ProvisioningToken,
) -> ProvisionedGroup:
    """Change a group from what it is now to what `change` makes of it. Raises NotFound,
    InvalidInput, and Conflict for a name that another group has."""
    group = locks.lock_provisioned_group(public_id)
    before = describe_group(group)
    wanted = change(before)
    if wanted == before:
        return group
    _check_name(wanted, group)
    by = build_provider_actor(token)
    _set_members(group, before, wanted, by)
    _log_group(
        "provisioning.group_changed",
        group,
        by,
        added=len(wanted.members - before.members),
        removed=len(before.members - wanted.members),
    )
    return group


@operation(
    locks="group, people",
    writes=CHANGES,
    logs=f"provisioning.group_removed, {OF_MEMBERS}",
)
def remove_group(public_id: str, *, token: ProvisioningToken) -> None:
    """Delete a group; its members lose what it gave them. Raises NotFound."""
    group = locks.lock_provisioned_group(public_id)
    before, by = describe_group(group), build_provider_actor(token)
    _set_members(group, before, GroupState(before.name, before.external_id), by)
    _log_group("provisioning.group_removed", group, by, removed=len(before.members))
    group.delete()


def _set_members(
    group: ProvisionedGroup, before: GroupState, wanted: GroupState, by: log.Actor
) -> None:
    """Save the group, and put in force what it gives those whom the change concerns.
    They are locked first: two groups of a person may change at once."""
    concerned = before.members ^ wanted.members
    if wanted.name != before.name:
        concerned = before.members | wanted.members
    people = _lock_members(concerned)
    former = _load_group_names(people.values())
    gone = [people[who].pk for who in before.members - wanted.members]
    ProvisionedMember.objects.filter(group=group, person__in=gone).delete()
    ProvisionedMember.objects.bulk_create(
        ProvisionedMember(group=group, person=people[who])
        for who in sorted(wanted.members - before.members)
    )
    _save_group(group, wanted)
    latter = _load_group_names(people.values())
    for who in sorted(people):
        pk = people[who].pk
        group_authority.settle_access(people[who], former[pk], latter[pk], by=by)


def _save_group(group: ProvisionedGroup, wanted: GroupState) -> None:
    group.name, group.external_id = wanted.name, wanted.external_id
    group.changed_at = clock.now()
    try:
        with transactions.open_savepoint("Saving a group"):
            group.save()
    except IntegrityError:  # another one took the name meanwhile
        raise _build_name_conflict(wanted.name) from None


def _lock_members(members: Collection[str]) -> dict[str, Person]:
    """These people by public id. Raises InvalidInput for one who is not there."""
    rows = select_users().filter(public_id__in=members)
    locked = locks.lock_people(list(rows.values_list("pk", flat=True)))
    present = set(rows.values_list("pk", flat=True))  # some may be deleted meanwhile
    known = {row.public_id: row for row in locked if row.pk in present}
    if unknown := sorted(set(members) - known.keys()):
        rule = f"no user has the id {unknown[0][:40]}. Create the user first"
        raise InvalidInput(
            "Nothing was changed.", errors=[build_field_error("members", rule)]
        )
    return known


def _load_group_names(people: Collection[Person]) -> Mapping[int, set[str]]:
    """The names of the groups of each of these people, by pk."""
    names: dict[int, set[str]] = {person.pk: set() for person in people}
    rows = ProvisionedMember.objects.filter(person__in=list(names))
    for pk, name in rows.values_list("person", "group__name"):
        names[pk].add(name)
    return names


def _check_name(wanted: GroupState, group: ProvisionedGroup | None) -> None:
    for path, text in (
        ("displayName", wanted.name),
        ("externalId", wanted.external_id),
    ):
        if len(text) > LONGEST_ID:
            rule = f"may have at most {LONGEST_ID} characters. Shorten it"
            raise InvalidInput(
                "Nothing was changed.", errors=[build_field_error(path, rule)]
            )
    others = ProvisionedGroup.objects.exclude(pk__in=[group.pk] if group else [])
    if others.filter(name__iexact=wanted.name).exists():
        raise _build_name_conflict(wanted.name)


def _build_name_conflict(name: str) -> Conflict:
    return Conflict(
        f"displayName: another group is called {name}. Nothing was changed. Find that"
        " group by its displayName, or send another name.",
        scim_type=UNIQUE,
    )


def _log_group(
    kind: str, group: ProvisionedGroup, by: log.Actor, **counts: int
) -> None:
    data = {"group": group.public_id, **{name: str(n) for name, n in counts.items()}}
    private = {"name": group.name}
    log.append(kind, actor=by, at=clock.now(), data=data, private=private)

"""People and groups as SCIM resources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from policies.models import Person, ProvisionedGroup, ProvisionedMember
from reviews.administration.provisioning import find_provisioned

from .answers import build_address

SCHEMAS = "urn:ietf:params:scim:schemas:core:2.0"


def build_users(people: Sequence[Person]) -> list[dict[str, Any]]:
    """These people."""
    return [build_user(person) for person in people]


def build_user(person: Person) -> dict[str, Any]:
    """One person, without what the provider has no business with."""
    row = find_provisioned(person)
    emails = [{"value": person.email, "type": "work", "primary": True}]
    return {
        "schemas": [f"{SCHEMAS}:User"],
        "id": person.public_id,
        **({"externalId": row.external_id} if row and row.external_id else {}),
        "userName": person.username,
        "displayName": str(person),
        "name": {
            "formatted": str(person),
            "givenName": person.first_name,
            "familyName": person.last_name,
        },
        "emails": emails if person.email else [],
        "active": person.is_active,
        "meta": _build_meta(
            "User",
            person.public_id,
            person.date_joined,
            row.changed_at if row else person.date_joined,
        ),
    }


def build_groups(
    groups: Sequence[ProvisionedGroup], *, members: bool = True
) -> list[dict[str, Any]]:
    """These groups with their members, or without: a group may have thousands."""
    known: dict[int, list[Person]] = defaultdict(list)
    if members:
        rows = ProvisionedMember.objects.filter(group__in=groups)
        for row in rows.select_related("person").order_by("person"):
            known[row.group_id].append(row.person)
    return [_build_group(group, known[group.pk]) for group in groups]


def _build_group(group: ProvisionedGroup, members: Sequence[Person]) -> dict[str, Any]:
    return {
        "schemas": [f"{SCHEMAS}:Group"],
        "id": group.public_id,
        **({"externalId": group.external_id} if group.external_id else {}),
        "displayName": group.name,
        "members": [
            {
                "value": person.public_id,
                "display": person.username,
                "$ref": build_address("Users", person.public_id),
            }
            for person in members
        ],
        "meta": _build_meta(
            "Group", group.public_id, group.created_at, group.changed_at
        ),
    }


def choose_attributes(
    resource: dict[str, Any], wanted: str, unwanted: str
) -> dict[str, Any]:
    """The resource with the attributes that a query asks for (RFC 7644, 3.9)."""
    return {
        name: value
        for name, value in resource.items()
        if is_wanted(name, wanted, unwanted)
    }


def is_wanted(name: str, wanted: str, unwanted: str) -> bool:
    """Whether a query asks for this attribute."""
    if name in {"schemas", "id"}:
        return True
    names, without = _split_names(wanted), _split_names(unwanted)
    return (not names or name.lower() in names) and name.lower() not in without


def _split_names(text: str) -> set[str]:
    names = text.replace(f"{SCHEMAS}:User:", "").replace(f"{SCHEMAS}:Group:", "")
    return {name.strip().partition(".")[0].lower() for name in names.split(",")} - {""}


def _build_meta(
    kind: str, public_id: str, created: datetime, changed: datetime
) -> dict[str, str]:
    return {
        "resourceType": kind,
        "created": created.isoformat(),
        "lastModified": changed.isoformat(),
        "location": build_address(f"{kind}s", public_id),
    }

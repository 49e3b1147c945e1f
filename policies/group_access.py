"""What the groups of an identity provider mean here: a role, and queues."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from .choices import Role


class GroupAccess(BaseModel):
    """What the members of one group may do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Role
    queues: frozenset[str] = frozenset()


_GROUPS = TypeAdapter(dict[str, GroupAccess])


def parse_groups(text: Any) -> dict[str, GroupAccess]:
    """The groups by name, in the order of a JSON object. Raises ValueError."""
    try:
        return _GROUPS.validate_python(json.loads(text) if text else {})
    except (ValidationError, json.JSONDecodeError):
        roles = ", ".join(Role)
        raise ValueError(
            'must be JSON like {"gate-money": {"role": "reviewer", "queues":'
            f' ["money"]}}}}, with one of the roles {roles}'
        ) from None


def combine_access(
    groups: Mapping[str, GroupAccess], names: Collection[str]
) -> GroupAccess | None:
    """What a member of the groups `names` may do. The first group of the mapping that
    they are in decides the role, and all of that role give queues. None for nothing."""
    granted = [access for group, access in groups.items() if group in names]
    if not granted:
        return None
    role = granted[0].role
    queues = [access.queues for access in granted if access.role is role]
    return GroupAccess(role=role, queues=frozenset().union(*queues))

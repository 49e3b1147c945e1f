"""The page model of provisioning: the tokens of the identity provider, its groups with
what they give, and how many people it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from policies.models import (
    Person,
    ProvisionedGroup,
    ProvisionedPerson,
    ProvisioningToken,
    Queue,
)
from reviews import permissions
from reviews.administration import group_authority, provisioning_tokens
from reviews.roles import Permission

from ..people.forms import ROLE_LABELS
from ..scim.answers import build_address


@dataclass(frozen=True, slots=True)
class TokenLine:
    """One token; `why_not` says why this reader may not confirm it."""

    row: ProvisioningToken
    state: str
    icon: str
    waits: bool
    valid: bool
    why_not: str

    @property
    def name(self) -> str:
        """What of the token may be shown again."""
        return f"{provisioning_tokens.MARK}_{self.row.prefix}…"


@dataclass(frozen=True, slots=True)
class GroupLine:
    """One group, and what it gives its members in words; "" for nothing."""

    name: str
    members: int
    gives: str


@dataclass(frozen=True, slots=True)
class ProvisioningPage:
    address: str
    tokens: Sequence[TokenLine]
    groups: Sequence[GroupLine]
    people: int
    may_manage: bool

    @property
    def waiting(self) -> list[TokenLine]:
        return [line for line in self.tokens if line.waits]


def build_provisioning_page(reader: Person, now: datetime) -> ProvisioningPage:
    """The page. Raises NotPermitted for anybody but administrators and auditors."""
    permissions.check_permission(reader, Permission.SEE_PEOPLE)
    rows = ProvisioningToken.objects.select_related(
        "asked_by", "confirmed_by", "ended_by"
    )
    provisioned = ProvisionedPerson.objects.filter(removed_at__isnull=True)
    return ProvisioningPage(
        address=build_address().rstrip("/"),
        tokens=[_build_token_line(row, reader, now) for row in rows],
        groups=_build_group_lines(),
        people=provisioned.count(),
        may_manage=permissions.has_permission(reader, Permission.MANAGE_PEOPLE),
    )


def _build_token_line(
    row: ProvisioningToken, reader: Person, now: datetime
) -> TokenLine:
    valid = provisioning_tokens.is_valid(row)
    waits = provisioning_tokens.is_waiting(row, now)
    if valid:
        state, icon = "In force", "ok"
    elif waits:
        state, icon = "Not confirmed yet", "wait"
    elif row.ended_at is None:
        state, icon = "Nobody confirmed it within a week", "void"
    else:
        state = "Revoked" if row.confirmed_at else "Refused"
        icon = "void"
    return TokenLine(
        row=row,
        state=state,
        icon=icon,
        waits=waits,
        valid=valid,
        why_not=provisioning_tokens.describe_why_no_answer(row, reader),
    )


def _build_group_lines() -> list[GroupLine]:
    titles = dict(Queue.objects.values_list("name", "title"))
    meanings = {}
    for group, access in group_authority.load_groups().items():
        queues = ", ".join(sorted(titles.get(name, name) for name in access.queues))
        role = ROLE_LABELS[access.role]
        meanings[group] = f"{role}, decides in {queues}" if queues else role
    rows = ProvisionedGroup.objects.annotate(size=Count("members")).order_by("name")
    return [GroupLine(row.name, row.size, meanings.get(row.name, "")) for row in rows]

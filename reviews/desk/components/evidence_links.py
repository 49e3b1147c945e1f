"""Links to the pages on which people decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from journal.clock import time_of_day
from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.choices import OPEN, Verdict
from reviews.effects.wording import GIVEN
from reviews.models import ApprovalRequest, Decision

from . import snapshots


@dataclass(frozen=True, slots=True)
class Kept:
    """One decision whose page can be opened."""

    text: str
    url: str


def links(
    person: Person, request: ApprovalRequest, found: Iterable[Decision]
) -> list[Kept]:
    """Of decisions that this person may read: those whose page they may open, too."""
    roles = permissions.roles_of(person)
    settled = Role.SUPERVISOR in roles and request.status not in OPEN
    every = settled or Role.AUDITOR in roles
    mine = (one for one in found if every or one.reviewer_id == person.pk)
    return [Kept(_said(one), snapshots.url(one)) for one in mine]


def _said(decision: Decision) -> str:
    verdict = GIVEN[Verdict(decision.verdict)].lower()
    return f"{verdict} at {time_of_day(decision.at)}, version {decision.version}"

"""Links to the stored pages on which people decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from journal.clock import format_time
from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.choices import OPEN, Verdict
from reviews.effects.wording import GIVEN_VERDICTS
from reviews.models import ApprovalRequest, Decision

from . import snapshots


@dataclass(frozen=True, slots=True)
class EvidenceLink:
    """A link to the page stored with one decision."""

    text: str
    url: str


def list_evidence_links(
    person: Person, request: ApprovalRequest, found: Iterable[Decision]
) -> list[EvidenceLink]:
    """Links for those of these decisions whose stored page this person may open. The
    decisions must already be limited to what the person may read."""
    roles = permissions.roles_of(person)
    settled = Role.SUPERVISOR in roles and request.status not in OPEN
    every = settled or Role.AUDITOR in roles
    mine = (one for one in found if every or one.reviewer_id == person.pk)
    return [
        EvidenceLink(_describe_decision(one), snapshots.build_snapshot_url(one))
        for one in mine
    ]


def _describe_decision(decision: Decision) -> str:
    verdict = GIVEN_VERDICTS[Verdict(decision.verdict)].lower()
    return f"{verdict} at {format_time(decision.at)}, version {decision.version}"

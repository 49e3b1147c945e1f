"""One decision being made: all that was read after the request's lock, and whom its
steps have already."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from journal.errors import Reauth
from policies.choices import Role

from . import quorum
from .models import ApprovalRequest, Decision, Lease, RequestVersion, StateReading
from .said import Said


@dataclass(slots=True)
class Case:
    """One decision being made: everything read after the lock."""

    said: Said
    request: ApprovalRequest
    version: RequestVersion
    role: Role
    now: datetime
    lease: Lease | None = None  # locked; it ends with the decision
    reading: StateReading | None = None  # what was shown; None for the revision's own

    def given(self) -> list[int]:
        """Step indexes already filled in the request's current version."""
        return given(self.request)


def given(request: ApprovalRequest) -> list[int]:
    """Step indexes already filled in the request's current version."""
    return [
        step
        for step in Decision.objects.filter(
            request=request, version=request.version, counts=True
        ).values_list("step", flat=True)
        if step is not None
    ]


def people_of_complete_steps(
    request: ApprovalRequest, version: RequestVersion
) -> list[str]:
    """Who filled the steps that are complete: counted on, and not asked again."""
    lacking = quorum.missing(version.steps, given(request))
    votes = Decision.objects.filter(
        request=request, version=version.number, counts=True
    ).select_related("reviewer")
    return [
        vote.reviewer.public_id
        for vote in votes
        if vote.step is not None and not lacking[vote.step]
    ]


def check_step_up(said: Said, now: datetime) -> None:
    """That this very verdict was proved, just now, by somebody who still can [I16].

    Raises Reauth. Caller holds the request's lock and read the person after it.
    """
    proof = said.step_up
    if proof is None or not proof.holds(said.bound, now):
        raise Reauth
    if not said.person.has_usable_password():
        raise Reauth("You have no password to confirm it with. Nothing was decided.")

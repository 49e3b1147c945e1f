"""The context of one decision: everything read after the request's lock, including
which of its steps are already filled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import F

from journal.errors import ReauthenticationRequired
from policies.choices import Role
from reviews import quorum
from reviews.models import (
    ApprovalRequest,
    Decision,
    Lease,
    RequestVersion,
    StateReading,
)

from .preflight import Preflight
from .submission import VerdictSubmission


@dataclass(slots=True)
class DecisionContext:
    """Everything that one decision needs; all but `preflight` is read after the
    request's lock."""

    said: VerdictSubmission
    request: ApprovalRequest
    version: RequestVersion
    role: Role
    now: datetime
    preflight: Preflight = field(default_factory=Preflight)
    lease: Lease | None = None  # locked; it ends with the decision
    reading: StateReading | None = None  # what was shown; None for the revision's own
    filled: Sequence[int] = ()  # the step index of each vote that already counts


def load_filled_steps(requests: Iterable[ApprovalRequest]) -> dict[str, list[int]]:
    """Load the step index of each counting vote on the current versions, by request id,
    in one query."""
    found: dict[str, list[int]] = {request.pk: [] for request in requests}
    votes = Decision.objects.filter(
        request__in=found, version=F("request__version"), counts=True
    )
    for pk, step in votes.order_by("pk").values_list("request", "step"):
        if step is not None:
            found[pk].append(step)
    return found


def list_complete_step_people(
    request: ApprovalRequest, version: RequestVersion, given: Sequence[int]
) -> list[str]:
    """Public ids of the people who filled the complete steps: their votes carry over to
    a next version, and they are not asked again. `given` holds the step index of every
    vote that counts."""
    lacking = quorum.missing(version.steps, given)
    if all(lacking):
        return []
    votes = Decision.objects.filter(
        request=request, version=version.number, counts=True
    ).select_related("reviewer")
    return [
        vote.reviewer.public_id
        for vote in votes
        if vote.step is not None and not lacking[vote.step]
    ]


def check_step_up(said: VerdictSubmission, now: datetime) -> None:
    """Check that the person just confirmed exactly this verdict with a usable password
    [I16].

    Raises Reauth. Caller holds the request's lock and read the person after it.
    """
    proof = said.step_up
    if proof is None or not proof.holds(said.bound, now):  # guard: step-up-bound
        raise ReauthenticationRequired
    if not said.person.has_usable_password():
        raise ReauthenticationRequired(
            "You have no password to confirm it with. Nothing was decided."
        )

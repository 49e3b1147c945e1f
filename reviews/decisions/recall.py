"""Recall an approval while its recall window is open."""

from __future__ import annotations

from datetime import datetime, timedelta

from journal import clock, failpoints
from journal.clock import format_time
from journal.errors import AlreadyDecided, AlreadyRunning, DomainError, NotPermitted
from journal.operations import operation
from policies.choices import Role
from policies.models import Person
from policies.people import build_actor
from reviews import locks, permissions, transitions
from reviews.choices import RequestStatus
from reviews.grants import approvers
from reviews.holds import take
from reviews.models import ApprovalRequest, Decision, RequestVersion
from reviews.requests import versions
from reviews.stops import incidents


@operation(
    locks="request, the person's holds (advisory), Hold",
    writes="ApprovalRequest, RequestVersion, Hold",
    logs="request.recalled, hold.taken, hold.lapsed, hold.released",
    after="mail, wake-up",
)
def recall_approval(*, request_id: str, person: Person) -> ApprovalRequest:
    """Recall an approval while its window is open. The request is open again, and the
    person who recalled it holds it if they may decide it. Raises NotFound,
    NotPermitted, AlreadyRunning (the window is over), AlreadyDecided."""
    request = locks.lock_request_shown_to(person, request_id)
    now = clock.now()
    apply_recall(request, person, now)
    if not permissions.describe_why_cannot_decide(person, request, request.sealed):
        take.assign_hold(request, person, now)
    failpoints.point("recall_uncommitted", request.pk)
    return request


def apply_recall(request: ApprovalRequest, person: Person, now: datetime) -> None:
    """Recall an approval, as a step. Caller holds the request's lock."""
    incidents.catch_up_deadline(request, now, always=True)
    version = request.sealed
    _check_may_recall(person, request, version)
    if request.status != RequestStatus.RECALLABLE:
        raise _build_too_late_error(request)
    if not _is_recallable(request, now):  # guard: recall-window
        raise AlreadyRunning
    transitions.request.apply(
        request,
        "recall",
        actor=build_actor(person),
        now=now,
        changes={
            "version": request.version + 1,
            "recall_until": None,
            "expires_at": _compute_recalled_deadline(request, now),
        },
    )
    versions.seal_version(
        request,
        version.revision,
        versions.parse_evaluation(version.revision),
        cause="recalled",
        now=now,
        steps=version.steps,
        carried=version.carried,
        escalated_by=version.escalated_by,
        edited_by=version.edited_by,
    )


def _is_recallable(request: ApprovalRequest, now: datetime) -> bool:
    """Whether the window is open. After it, an approval may be recalled only if its
    votes are missing, so that it cannot run."""
    in_time = request.recall_until is not None and request.recall_until > now
    return in_time or bool(approvers.without_votes([request]))


def _build_too_late_error(request: ApprovalRequest) -> DomainError:
    if request.status != RequestStatus.AUTHORIZED:
        return AlreadyDecided("There is no approval left to undo. Nothing was changed.")
    return AlreadyRunning(
        f"The undo window closed at {format_time(request.settled_at)}, so this approval"
        " can no longer be undone. You can stop the run or propose a reversal."
    )


def _check_may_recall(
    person: Person, request: ApprovalRequest, version: RequestVersion
) -> None:
    role = permissions.check_admitted_to_queue(person, request.queue_id)
    voted = Decision.objects.filter(
        request=request, version=version.number, reviewer=person, counts=True
    ).exists()
    if not voted and role is not Role.SUPERVISOR:
        raise NotPermitted(
            "Only a person who approved this or a supervisor can undo the approval."
        )


def _compute_recalled_deadline(request: ApprovalRequest, now: datetime) -> datetime:
    """A recalled request is open for at least another minute, up to its latest
    deadline."""
    least = incidents.compute_clock_start(request, now) + timedelta(seconds=60)
    return min(max(request.expires_at, least), request.expires_at_most)

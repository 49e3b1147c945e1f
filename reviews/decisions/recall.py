"""Recall an approval while its recall window is open."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from journal import clock, failpoints, log
from journal.clock import time_of_day
from journal.errors import Decided, DomainError, NotYours, Running
from policies.choices import Role
from policies.models import Person
from reviews import locks, permissions, transitions
from reviews.choices import RequestStatus
from reviews.grants import approvers
from reviews.holds import take
from reviews.models import ApprovalRequest, Decision, RequestVersion
from reviews.requests import versions
from reviews.stops import incidents


@transaction.atomic(durable=True)
def recall(*, request_id: str, person: Person) -> ApprovalRequest:
    """Recall an approval while its window is open. The request is open again, and the
    person who recalled it holds it if they may decide it.

    Raises NotFound, NotYours, Running (the window is over), Decided. Locks: request.
    """
    request = locks.approval_request(request_id)
    now = clock.now()
    take_back(request, person, now)
    if not permissions.can_decide(person, request, request.sealed):
        take.hold(request, person, now)
    failpoints.point("recall_uncommitted", request.pk)
    return request


def take_back(request: ApprovalRequest, person: Person, now: datetime) -> None:
    """Recall an approval, as a step. Caller holds the request's lock."""
    incidents.catch_up(request, now, always=True)
    version = request.sealed
    _check_may_recall(person, request, version)
    if request.status != RequestStatus.RECALLABLE:
        raise _too_late(request)
    if not _is_recallable(request, now):  # guard: recall-window
        raise Running
    transitions.request.apply(
        request,
        "recall",
        actor=log.Actor("person", person.public_id),
        now=now,
        changes={
            "version": request.version + 1,
            "recall_until": None,
            "expires_at": _time_to_answer(request, now),
        },
    )
    versions.seal(
        request,
        version.revision,
        versions.evaluation_of(version.revision),
        cause="recalled",
        now=now,
        steps=version.steps,
        carried=version.carried,
        escalated_by=version.escalated_by,
    )


def _is_recallable(request: ApprovalRequest, now: datetime) -> bool:
    """Whether the window is open. After it, an approval may be recalled only if its
    votes are missing, so that it cannot run."""
    in_time = request.recall_until is not None and request.recall_until > now
    return in_time or bool(approvers.without_votes([request]))


def _too_late(request: ApprovalRequest) -> DomainError:
    if request.status != RequestStatus.AUTHORIZED:
        return Decided("This is no approval that waits to run. Nothing was recalled.")
    return Running(
        f"It was let run at {time_of_day(request.settled_at)}, so it can no longer be "
        "recalled. You can stop the run or propose a reversal."
    )


def _check_may_recall(
    person: Person, request: ApprovalRequest, version: RequestVersion
) -> None:
    """The people who approved it and supervisors of its queue may recall it."""
    role = permissions.admitted_role(person, request.queue_id)
    voted = Decision.objects.filter(
        request=request, version=version.number, reviewer=person, counts=True
    ).exists()
    if not voted and role is not Role.SUPERVISOR:
        raise NotYours("Only who approved this, or a supervisor, may recall it.")


def _time_to_answer(request: ApprovalRequest, now: datetime) -> datetime:
    """A recalled request is open for at least another minute, up to its latest
    deadline."""
    least = incidents.running_from(request, now) + timedelta(seconds=60)
    return min(max(request.expires_at, least), request.expires_at_most)

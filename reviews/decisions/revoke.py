"""Revoke a stopped reviewer's approvals of effects that have not run. The task of the
Stop row calls this for one proposal at a time."""

from __future__ import annotations

from datetime import datetime

from journal import clock, log, outbox
from journal.errors import AlreadyDecided
from journal.operations import operation
from reviews import locks, quorum, transitions
from reviews.choices import OPEN, ExecutionStatus
from reviews.grants import grants
from reviews.models import ApprovalRequest, Decision, Execution, RequestVersion
from reviews.requests import versions
from reviews.stops import incidents, scope

from . import case

STOP_ACTOR = log.Actor("system", "stop")
REVOKED_CODE = "approval_revoked"
REVOKED_DETAIL = "An approval was revoked before this ran."


@operation(
    locks="request",
    writes="ApprovalRequest and RequestVersion, or Grant and Execution; Observation",
    logs="request.revoked, or grant.revoked and execution.refused or execution.unknown",
    after="mail, webhook, wake-up",
)
def revoke_approval(*, proposal_id: str, reviewer: str) -> None:
    """Revoke one reviewer's approval of a proposal. An open request is asked again
    without their vote; a queued execution is refused and its grant revoked.

    Raises AlreadyDecided when no vote of theirs is left to revoke, or Conflict when the
    execution was just claimed.
    """
    request = locks.lock_request_of_proposal(proposal_id)
    now = clock.now()
    if request is None or not scope.has_counted_approval(request, reviewer):
        raise AlreadyDecided("They have no counted approval here.")
    if request.status in OPEN:
        _reopen_without_vote(request, reviewer, now)
        return
    if not grants.revoke_queued(
        request.proposal,
        actor=STOP_ACTOR,
        now=now,
        code=REVOKED_CODE,
        detail=REVOKED_DETAIL,
    ):
        raise AlreadyDecided("There is nothing left to revoke.")
    refused = Execution.objects.filter(
        proposal=proposal_id, status=ExecutionStatus.REFUSED, code=REVOKED_CODE
    )
    for execution in refused:
        outbox.publish("execution.revoked", subject=execution.pk)


def _reopen_without_vote(
    request: ApprovalRequest, reviewer: str, now: datetime
) -> None:
    """Seal a new version that asks for all that is missing without this vote."""
    incidents.catch_up_deadline(request, now, always=True)
    version = request.sealed
    evaluation = versions.parse_evaluation(version.revision)
    given = _list_steps_of_others(version, reviewer)
    others = case.list_complete_step_people(request, version, given)
    carried = [*version.carried, *others]
    steps = quorum.list_unfinished_steps(version.steps, given)
    if reviewer in version.carried:
        steps = [*steps, case.find_vacated_step(request, reviewer)]
    transitions.request.apply(
        request,
        "revoke",
        actor=STOP_ACTOR,
        now=now,
        changes={
            "version": request.version + 1,
            "recall_until": None,
            "expires_at": incidents.compute_renewed_deadline(
                request, evaluation.timeout, now
            ),
            "reminded_at": None,
        },
        steps=steps,
        data={"code": REVOKED_CODE},
    )
    versions.seal_version(
        request,
        version.revision,
        evaluation,
        cause="revoked",
        now=now,
        steps=steps,
        carried=[person for person in carried if person != reviewer],
        escalated_by=version.escalated_by,
        edited_by=version.edited_by,
    )


def _list_steps_of_others(version: RequestVersion, reviewer: str) -> list[int]:
    votes = Decision.objects.filter(
        request=version.request_id, version=version.number, counts=True
    ).exclude(reviewer__public_id=reviewer)
    return [step for step in votes.values_list("step", flat=True) if step is not None]

"""What a supervisor may do with a request besides deciding it: return it with guidance,
assign it to one person, and close a disagreement."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from journal import clock, log, notify
from journal.errors import Conflict, Decided, Expired, Invalid, NotYours, Reason, at
from policies.choices import Role
from policies.evaluation import Evaluation
from policies.models import Person
from reviews import locks, permissions, quorum, transitions
from reviews.choices import NoteKind, RequestStatus, Verdict
from reviews.grants import uncertain
from reviews.holds import rows
from reviews.models import ApprovalRequest, Decision, Note, RequestVersion
from reviews.quorum import StepData
from reviews.requests import versions
from reviews.stops import incidents

from . import case, drafts, tally


@transaction.atomic(durable=True)
def return_with_guidance(
    *, request_id: str, person: Person, guidance: str
) -> ApprovalRequest:
    """Return an escalated request to the people whom the policy asks, including the one
    who escalated it, with guidance and with time to answer.

    Raises NotFound, NotYours, Decided, Expired, Reason without guidance, Held, and
    Conflict when nobody escalated it or only the supervisor's answer is missing.
    Locks: the request, its hold.
    """
    request = locks.approval_request(request_id)
    now = clock.now()
    version = request.sealed
    _check_waiting(request, now)
    _check_supervises(person, request)
    rows.check(locks.lease(request.pk), person, now)
    if not versions.is_handed_up(request):
        raise Conflict("Nobody escalated this, so there is nothing to give back.")
    if not guidance.strip():
        raise Reason("Write what they should look at. Nothing was returned.")
    evaluation = versions.evaluation_of(version.revision)
    given = case.filled([request])[request.pk]
    steps = _steps_again(version, given, evaluation)
    complete = case.people_of_complete_steps(request, version, given)
    carried = [*version.carried, *complete]
    actor = log.Actor("person", person.public_id)
    transitions.request.apply(
        request,
        "return",
        actor=actor,
        now=now,
        changes={
            "version": request.version + 1,
            "tier": versions.asked_tier(evaluation),
            "expires_at": _topped_up(request, evaluation, now),
            "reminded_at": None,
        },
        guard=tally.unchanged(request),
        steps=steps,
        data={"cause": "returned"},
    )
    versions.seal(
        request,
        version.revision,
        evaluation,
        cause="returned",
        now=now,
        steps=steps,
        carried=carried,
    )
    drafts.write(request, person, NoteKind.GUIDANCE, guidance, now=now)
    rows.let_go(request, person, now)
    return request


def _check_waiting(request: ApprovalRequest, now: datetime) -> None:
    incidents.catch_up(request, now, always=True)
    if request.status != RequestStatus.PENDING:
        raise Decided("There is nothing to decide here any more. Nothing was changed.")
    if request.expires_at <= now:
        raise Expired(
            f"This has expired. Nothing was changed. {uncertain.said_of(request)}"
        )


def _check_supervises(person: Person, request: ApprovalRequest) -> None:
    if permissions.admitted_role(person, request.queue_id) is not Role.SUPERVISOR:
        raise NotYours("Only a supervisor of this queue may do that.")
    if request.proposal.bars(person.public_id):
        raise NotYours(f"{permissions.CONCERNED}do that.")


def _steps_again(
    version: RequestVersion, given: Sequence[int], evaluation: Evaluation
) -> list[StepData]:
    """The policy's steps that are not complete; steps that the escalation added are
    dropped. Raises Conflict when none is left."""
    open_steps = quorum.unfinished(version.steps, given)
    steps = _both(versions.steps_of(evaluation), open_steps)
    if not steps:
        raise Conflict("All that the policy asks for is there. Only you are missing.")
    return steps


def _both(policys: Sequence[StepData], still: Sequence[StepData]) -> list[StepData]:
    """The steps in both sequences, with multiplicity, in the policy's order."""
    left = list(still)
    found = []
    for step in policys:
        if step in left:
            left.remove(step)
            found.append(step)
    return found


def _topped_up(
    request: ApprovalRequest, evaluation: Evaluation, now: datetime
) -> datetime:
    """The rule's time from now on, never earlier than before, never past the latest."""
    again = incidents.running_from(request, now) + timedelta(seconds=evaluation.timeout)
    return min(max(request.expires_at, again), request.expires_at_most)


@transaction.atomic(durable=True)
def assign(*, request_id: str, person: Person, to: Person) -> ApprovalRequest:
    """Assign a request to one person who may decide it; others may still decide it too.

    Raises NotFound, NotYours, Decided, Expired, Invalid if that person may not decide
    it. Locks: the request.
    """
    request = locks.approval_request(request_id)
    now = clock.now()
    _check_waiting(request, now)
    _check_supervises(person, request)
    if permissions.can_decide(to, request, request.sealed):
        raise Invalid(
            errors=[at("to", "they cannot decide this; choose somebody else")]
        )
    transitions.request.apply(
        request,
        "assign",
        actor=log.Actor("person", person.public_id),
        now=now,
        changes={"assignee": to},
        guard=tally.unchanged(request),
        data={"to": to.public_id},
    )
    return request


@transaction.atomic(durable=True)
def show_view(*, request_id: str, person: Person) -> None:
    """Log that a supervisor looked at the opinion of the person who escalated: it may
    influence the supervisor's own decision.

    Raises NotFound, NotYours.
    """
    request = locks.approval_request(request_id)
    _check_supervises(person, request)
    log.append(
        "request.view_shown",
        actor=log.Actor("person", person.public_id),
        at=clock.now(),
        **transitions.request.context(request),
    )


@transaction.atomic(durable=True)
def arbitrate(*, request_id: str, person: Person, text: str) -> Note:
    """Close a disagreement with a note on what it taught. It reopens nothing: the
    rejection remains.

    Raises NotFound, NotYours, Reason for an empty text, Conflict when nobody disagreed
    or it was closed before. Locks: the request.
    """
    request = locks.approval_request(request_id)
    _check_supervises(person, request)
    if not is_split(request):
        raise Conflict("Nobody disagreed on this. Nothing was recorded.")
    if Note.objects.filter(request=request, kind=NoteKind.ARBITRATION).exists():
        raise Conflict("This was closed before. Nothing was recorded.")
    if not text.strip():
        raise Reason("Write what this taught. Nothing was recorded.")
    note = drafts.write(request, person, NoteKind.ARBITRATION, text, now=clock.now())
    notify.announce(request.proposal_id)
    return note


def is_split(request: ApprovalRequest) -> bool:
    """Whether it was rejected although somebody approved the same version."""
    if request.status != RequestStatus.REJECTED:
        return False
    votes = Decision.objects.filter(request=request, version=request.version)
    return (
        votes.filter(counts=True).exists()
        and votes.filter(verdict=Verdict.REJECT).exists()
    )

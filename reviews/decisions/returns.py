"""What a supervisor may do with a request besides deciding it: return it with guidance,
assign it to one person, and close a disagreement."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from journal import clock, log, notify
from journal.errors import (
    AlreadyDecided,
    Conflict,
    InvalidInput,
    NotPermitted,
    ReasonMissing,
    RequestExpired,
    build_field_error,
)
from journal.operations import operation
from policies.choices import Role
from policies.evaluation import Evaluation
from policies.models import Person
from policies.people import build_actor
from reviews import locks, permissions, quorum, transitions
from reviews.choices import CanaryEnding, NoteKind, RequestStatus, Verdict
from reviews.governance import voters
from reviews.grants import uncertain
from reviews.holds import rows
from reviews.models import ApprovalRequest, Decision, Note, RequestVersion
from reviews.quorum import StepData
from reviews.requests import versions
from reviews.stops import incidents

from .. import canary_verdicts
from . import case, drafts, tally


@operation(
    locks="request, Hold",
    writes="ApprovalRequest, RequestVersion, Note, Hold",
    logs="request.returned, note.added, hold.released",
    after="mail, wake-up",
)
def return_with_guidance(
    *, request_id: str, person: Person, guidance: str
) -> ApprovalRequest:
    """Return an escalated request to the people whom the policy asks, including the one
    who escalated it, with guidance and with time to answer.

    Raises NotFound, NotPermitted, AlreadyDecided, RequestExpired, ReasonMissing without
    guidance, HeldByAnother, and Conflict when nobody escalated it or only the
    supervisor's answer is missing.
    """
    request = locks.lock_request_shown_to(person, request_id)
    now = clock.now()
    version = request.sealed
    check_waiting(request, now)
    check_supervises(person, request)
    rows.check_hold(locks.lock_hold(request.pk), person, now)
    if not versions.is_escalated(request):
        raise Conflict("This was not escalated, so it cannot be returned.")
    if not guidance.strip():
        raise ReasonMissing("Enter guidance for the reviewers. Nothing was returned.")
    evaluation = versions.parse_evaluation(version.revision)
    votes = voters.list_counted_votes([request.pk])[request.pk]
    given = [step for step, _ in votes]
    steps = _compute_remaining_steps(version, given, evaluation)
    complete = case.list_complete_step_people(request, version, given)
    carried = [*version.carried, *complete]
    actor = build_actor(person)
    transitions.request.apply(
        request,
        "return",
        actor=actor,
        now=now,
        changes={
            "version": request.version + 1,
            "tier": versions.compute_asked_tier(evaluation),
            "expires_at": incidents.compute_renewed_deadline(
                request, evaluation.timeout, now
            ),
            "reminded_at": None,
        },
        guard=tally.UNCHANGED_GUARD,
        steps=steps,
        data={"cause": "returned"},
    )
    versions.seal_version(
        request,
        version.revision,
        evaluation,
        cause="returned",
        now=now,
        steps=steps,
        carried=carried,
        edited_by=version.edited_by,
    )
    drafts.create_note(request, person, NoteKind.GUIDANCE, guidance, now=now)
    rows.free_hold_of_person(request, person, now)
    return request


def check_waiting(request: ApprovalRequest, now: datetime) -> None:
    """Check that the request still waits, with its deadline caught up. Raises
    AlreadyDecided or RequestExpired. Caller holds the request's lock."""
    incidents.catch_up_deadline(request, now, always=True)
    if request.status != RequestStatus.PENDING:
        raise AlreadyDecided("There is nothing left to decide. Nothing was changed.")
    if request.expires_at <= now:
        raise RequestExpired(
            "This has expired. Nothing was changed. "
            f"{uncertain.describe_effect(request)}"
        )


def check_supervises(person: Person, request: ApprovalRequest) -> None:
    """Check that the person is a supervisor of the request's queue and that it does not
    concern them. Raises NotPermitted."""
    if (
        permissions.check_admitted_to_queue(person, request.queue_id)
        is not Role.SUPERVISOR
    ):
        raise NotPermitted("Only a supervisor of this queue can do that.")
    if request.proposal.bars(person.public_id):
        raise NotPermitted(f"{permissions.CONCERNED_PREFIX}do that.")


def _compute_remaining_steps(
    version: RequestVersion, given: Sequence[int], evaluation: Evaluation
) -> list[StepData]:
    """The policy's steps that are not complete; steps that the escalation added are
    dropped. Raises Conflict when none is left."""
    open_steps = quorum.list_unfinished_steps(version.steps, given)
    steps = _intersect_steps(versions.build_steps(evaluation), open_steps)
    if not steps:
        raise Conflict(
            "Only a supervisor's decision is missing, so it cannot be returned."
        )
    return steps


def _intersect_steps(
    policys: Sequence[StepData], still: Sequence[StepData]
) -> list[StepData]:
    """The steps in both sequences, with multiplicity, in the policy's order."""
    left = list(still)
    common = []
    for step in policys:
        if step in left:
            left.remove(step)
            common.append(step)
    return common


@operation(
    locks="request",
    writes="ApprovalRequest, and Canary when it is one",
    logs="request.assigned or canary.revealed",
    after="mail, wake-up",
)
def assign_request(*, request_id: str, person: Person, to: Person) -> ApprovalRequest:
    """Assign a request to one person who may decide it; others may still decide it too.
    Raises NotFound, NotPermitted, AlreadyDecided, RequestExpired, InvalidInput if that
    person may not decide it."""
    request = locks.lock_request_shown_to(person, request_id)
    now = clock.now()
    check_waiting(request, now)
    check_supervises(person, request)
    if request.canary:  # it is nobody else's, so it ends
        ending = CanaryEnding.ASKED
        canary_verdicts.end_canary(request, ending, actor=build_actor(person), now=now)
        return request
    if permissions.describe_why_cannot_decide(to, request, request.sealed):
        raise InvalidInput(
            errors=[
                build_field_error(
                    "to", "they cannot decide this; choose another person"
                )
            ]
        )
    transitions.request.apply(
        request,
        "assign",
        actor=build_actor(person),
        now=now,
        changes={"assignee": to},
        guard=tally.UNCHANGED_GUARD,
        data={"to": to.public_id},
    )
    return request


@operation(locks="request", logs="request.view_shown")
def record_view_shown(*, request_id: str, person: Person) -> None:
    """Log that a supervisor looked at the opinion of the person who escalated: it may
    influence the supervisor's own decision. Raises NotFound, NotPermitted."""
    request = locks.lock_request_shown_to(person, request_id)
    check_supervises(person, request)
    log.append(
        "request.view_shown",
        actor=build_actor(person),
        at=clock.now(),
        **transitions.request.context(request),
    )


@operation(locks="request", writes="Note", logs="note.added", after="wake-up")
def record_arbitration(*, request_id: str, person: Person, text: str) -> Note:
    """Close a disagreement with a note on what it taught. It reopens nothing: the
    rejection remains. Raises NotFound, NotPermitted, ReasonMissing for an empty text,
    Conflict when nobody disagreed or it was closed before."""
    request = locks.lock_request_shown_to(person, request_id)
    check_supervises(person, request)
    if not is_split(request):
        raise Conflict("There is no disagreement on this. Nothing was recorded.")
    if Note.objects.filter(request=request, kind=NoteKind.ARBITRATION).exists():
        raise Conflict("This disagreement is already closed. Nothing was recorded.")
    if not text.strip():
        raise ReasonMissing("Enter what was learned. Nothing was recorded.")
    note = drafts.create_note(
        request, person, NoteKind.ARBITRATION, text, now=clock.now()
    )
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

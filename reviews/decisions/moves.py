"""Moving an open request to another queue, with a reason.

The people of the other queue decide it from then on, under all that the policy asked of
the action when it judged it: tier, steps, reason, step-up, recall window and deadline
stay. Votes of people who do not serve the other queue are void; what they filled is
asked again there. So a move never lowers the required authority, and it is refused
where too few people could give it.

An escalation after the move asks a supervisor of the queue to which it was moved,
because a step is filled by people of the request's present queue. A later revision
stays there too, unless the policy chooses another queue for it than before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from datetime import datetime

from journal import clock
from journal.errors import (
    Conflict,
    PolicyViolation,
    ReasonMissing,
    build_field_error,
)
from journal.operations import operation
from policies.models import Person, Queue
from policies.people import build_actor
from reviews import canary_verdicts, locks, quorum, transitions
from reviews.choices import CanaryEnding, NoteKind
from reviews.governance import voters
from reviews.holds import rows
from reviews.models import ApprovalRequest, RequestVersion
from reviews.quorum import StepData
from reviews.requests import versions
from reviews.stops import incidents

from . import case, drafts, tally
from .returns import check_supervises, check_waiting

REASON_RULE = (
    f"Say why it moves, in at most {drafts.TEXT_LENGTH:,} characters. People of the"
    " other queue read it."
)


@operation(
    locks="request, Hold",
    writes="ApprovalRequest, RequestVersion, Note, Hold; Canary when it is one",
    logs="request.moved, note.added, hold.released or hold.offer_withdrawn; or "
    "canary.revealed",
    after="mail, wake-up",
)
def move_request(
    *, request_id: str, person: Person, to: Queue, reason: str
) -> ApprovalRequest:
    """Move an open request to another queue, as a supervisor of its present one.

    Claims of people who do not serve the other queue end, and so do an assignment to
    one of them and their votes; the deadline stands. Raises NotFound, NotPermitted,
    AlreadyDecided, RequestExpired, ReasonMissing without a reason or for a longer one,
    Conflict when it is in that queue already, and PolicyViolation when too few people
    of that queue could decide it.
    """
    request = locks.lock_request_shown_to(person, request_id)
    now = clock.now()
    check_waiting(request, now)
    check_supervises(person, request)  # guard: move-supervises
    text = _read_reason(reason)
    if to.pk == request.queue_id:
        raise Conflict(f"It is in {to.title} already. Nothing was changed.")
    people = voters.list_voters(to.pk)
    serving = {voter.id for voter in people}
    asked = _draft_moved_version(request, serving)
    _check_enough_people(request, asked, people, to)
    actor = build_actor(person)
    if request.canary:  # it is nobody else's, so it ends
        canary_verdicts.end_canary(request, CanaryEnding.ASKED, actor=actor, now=now)
        rows.free_hold_of_person(request, person, now)
        return request
    moved = {"from": request.queue.name, "queue": to.name}
    incidents.follow_queue(request, to.pk, now)
    transitions.request.apply(
        request,
        "move",
        actor=actor,
        now=now,
        changes={
            "version": request.version + 1,
            "queue": to,
            "assignee": _find_kept_assignee(request, serving),
        },
        guard=tally.UNCHANGED_GUARD,
        steps=asked.steps,
        data=moved,
        private={"reason": text},
    )
    _seal_moved_version(request, asked, now)
    drafts.create_note(request, person, NoteKind.MOVE, text, now=now)
    rows.free_from_outsiders(request, serving, actor, now, {"cause": "moved"})
    return request


def _read_reason(reason: str) -> str:
    text = reason.strip()
    if not text or len(text) > drafts.TEXT_LENGTH:
        raise ReasonMissing(
            "Nothing was moved.", errors=[build_field_error("reason", REASON_RULE)]
        )
    return text


def _draft_moved_version(
    request: ApprovalRequest, serving: Collection[str]
) -> RequestVersion:
    """What the other queue is asked, which is not stored: the present version with the
    steps that the votes of `serving` people left open. As after an escalation, votes on
    a step that is not complete are asked afresh."""
    version = request.sealed
    votes = voters.list_counted_votes([request.pk])[request.pk]
    given = [step for step, voter in votes if voter in serving]  # guard: move-voids
    missing = quorum.missing(version.steps, given)
    steps: list[StepData] = quorum.list_unfinished_steps(version.steps, given)
    steps += [
        case.find_vacated_step(request, voter)
        for voter in version.carried
        if voter not in serving
    ]
    asked = copy(version)
    asked.steps = steps
    asked.carried = [
        *(voter for voter in version.carried if voter in serving),
        *(voter for step, voter in votes if voter in serving and not missing[step]),
    ]
    return asked


def _check_enough_people(
    request: ApprovalRequest,
    asked: RequestVersion,
    people: Sequence[voters.Voter],
    to: Queue,
) -> None:
    lacking = voters.find_shortage(people, request, asked, ())
    if lacking:  # guard: moved-in-vain
        raise PolicyViolation(
            "Too few people could decide this there. Nothing was moved.",
            errors=[
                build_field_error(
                    "queue",
                    f"only {lacking} of {to.title} could decide it; not counted is who"
                    " owns the agent or asked for the action, escalated, changed or"
                    " approved it, or has a lower approval limit",
                )
            ],
        )


def _find_kept_assignee(
    request: ApprovalRequest, serving: Collection[str]
) -> Person | None:
    assignee = request.assignee
    return assignee if assignee and assignee.public_id in serving else None


def _seal_moved_version(
    request: ApprovalRequest, asked: RequestVersion, now: datetime
) -> None:
    """Seal the version for the other queue. Beside the queue, only who must still
    decide may differ from the version before."""
    evaluation = versions.parse_evaluation(asked.revision)
    versions.seal_version(
        request,
        asked.revision,
        evaluation,
        cause="moved",
        now=now,
        steps=asked.steps,
        carried=asked.carried,
        escalated_by=asked.escalated_by,
        edited_by=asked.edited_by,
    )

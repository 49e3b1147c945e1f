"""Apply a verdict to one request or to many similar ones, in a few statements for all.

The functions are steps: the caller built each decision context and holds the locks of
the requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from journal.errors import PolicyViolation, build_field_error
from policies import solo
from policies.choices import Tier
from reviews import transitions
from reviews.choices import Verdict
from reviews.governance import voters
from reviews.grants import uncertain
from reviews.requests import repeats, versions
from reviews.stops import stops

from .case import DecisionContext, list_complete_step_people
from .modify import modify_requests
from .tally import UNCHANGED_GUARD, tally_votes
from .votes import StepVote, record_votes

ESCALATION_ALTERNATIVES = (
    "approve, modify or reject it, or have another person admitted to its queue"
)


def approve_requests(votes: Sequence[StepVote]) -> None:
    record_votes(votes)
    tally_votes(votes)


def reject_requests(votes: Sequence[StepVote]) -> None:
    """Reject the requests and release their amounts from the sums. One rejection is
    enough. Pause a run where the submission says so, and after as many rejections in a
    row as the policy allows."""
    record_votes(votes)
    first, rows = votes[0].case, [case.request for case, _ in votes]
    transitions.request.apply_many(
        rows,
        "reject",
        actor=first.submission.actor,
        now=first.now,
        changes={"settled_at": first.now, "recall_until": None},
        guard=UNCHANGED_GUARD,
        verdict=Verdict.REJECT,
    )
    uncertain.release_sums([request.proposal_id for request in rows])
    for case, _ in votes:
        if case.submission.pause:
            _pause_run(case)
    repeats.pause_rejected_runs([request.proposal for request in rows], first.now)


def _pause_run(case: DecisionContext) -> None:
    submission, proposal = case.submission, case.request.proposal
    stops.pause_run(
        agent=proposal.agent,
        thread=proposal.thread,
        person=submission.person,
        now=case.now,
        reason=submission.reason,
        reason_code=submission.reason_code,
    )


def escalate_requests(votes: Sequence[StepVote], cause: str = "escalated") -> None:
    """Escalate the requests: each asks for one more supervisor.

    `cause` is `escalated` for the voter's own verdict, or `verifier` when a verifier
    demands it for an approval. Raises PolicyViolation when a voter's escalation would
    leave too few people to decide. A verifier's escalation always applies; an alarm
    then reports a request that nobody can decide.
    """
    if cause == "escalated":
        _check_enough_people(votes)
    record_votes(votes)
    for case, _ in votes:
        _add_supervisor_step(case, cause)


def _check_enough_people(votes: Sequence[StepVote]) -> None:
    """Check that enough people can decide each request after it is escalated. Raises
    PolicyViolation."""
    counted = voters.list_counted_votes([case.request.pk for case, _ in votes])
    queues = {case.request.queue_id for case, _ in votes}
    people = {queue: voters.list_voters(queue) for queue in queues}
    for case, _ in votes:
        request, version = case.request, case.version
        lacking = voters.find_shortage_without(
            versions.build_escalated_steps(version, case.filled),
            people[request.queue_id],
            request,
            version,
            counted[request.pk],
            without=case.submission.person.public_id,
        )
        if lacking:  # guard: escalated-in-vain
            raise PolicyViolation(
                "Too few people could decide this after that. Nothing was recorded.",
                errors=[
                    build_field_error(
                        "verdict",
                        f"only {lacking} could decide it; {ESCALATION_ALTERNATIVES}",
                    )
                ],
            )


def _add_supervisor_step(case: DecisionContext, cause: str) -> None:
    """Seal a new version with one more supervisor's step and a later deadline. Complete
    steps are dropped; the people who filled them are carried over."""
    request, version = case.request, case.version
    steps = versions.build_escalated_steps(version, case.filled)
    carried = [
        *version.carried,
        *list_complete_step_people(request, version, case.filled),
    ]
    evaluation = versions.parse_evaluation(version.revision)
    transitions.request.apply(
        request,
        "escalate",
        actor=case.submission.actor,
        now=case.now,
        changes={
            "version": request.version + 1,
            "tier": Tier.ESCALATE,
            "expires_at": versions.compute_escalated_deadline(
                request, evaluation.timeout
            ),
        },
        guard=UNCHANGED_GUARD,
        steps=steps,
        verdict=case.submission.verdict,
        data={"cause": cause},
    )
    escalated_by = list(version.escalated_by)
    # In solo mode the same person decides what they escalated.
    if cause == "escalated" and not solo.is_solo():
        escalated_by.append(case.submission.person.public_id)
    versions.seal_version(
        request,
        version.revision,
        evaluation,
        cause=cause,
        now=case.now,
        steps=steps,
        carried=carried,
        escalated_by=escalated_by,
        edited_by=version.edited_by,
    )


VERDICTS: Mapping[Verdict, Callable[[Sequence[StepVote]], None]] = {
    Verdict.APPROVE: approve_requests,
    Verdict.REJECT: reject_requests,
    Verdict.MODIFY: modify_requests,
    Verdict.ESCALATE: escalate_requests,
}

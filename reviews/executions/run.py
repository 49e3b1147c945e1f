"""One attempt: claim, look up, re-check, perform, and have it recorded. Recovery never
runs a tool itself: it queues again, and the claim decides.

What an earlier attempt did, asked of its service before there is another.
"""

from __future__ import annotations

from dataclasses import replace

import structlog

from journal import failpoints
from journal.errors import StaleFence
from policies.choices import ExecutionClass
from reviews.grants import approved_tool
from reviews.tool_services import executors
from reviews.tool_services.executors import Outcome

from . import claims, leases, rechecks
from .claims import Claim
from .rechecks import No
from .record import keep_late, record, refuse


def ask_first(claim: Claim) -> Outcome | None:
    """What the service says of the attempts before this one; None where there was none
    that can have had an effect, or nobody can be asked. Outside a transaction."""
    if claim.untouched or claim.definition.look_up is None:  # guard: look-up-first
        return None
    found = executors.look_up(claim.definition, claim.call)
    failpoints.point("looked_up", claim.execution.pk)
    return found


def denies(claim: Claim, found: Outcome) -> bool:
    """Whether nothing of it happened, so that it may be begun. What failed in an
    attempt that never ended is its outcome; what failed before a person let it be
    tried again is the reason why they did."""
    if found.status != "failed":
        return False
    retried = claim.execution.retried_at is not None
    return found.code == executors.NOT_FOUND or retried  # guard: attempt-open


def may_repeat(claim: Claim, found: Outcome) -> bool:
    """A keyed provider that cannot say is asked for the effect itself: under the same
    key that is no second one."""
    keyed = approved_tool.class_of(claim.execution) is ExecutionClass.KEYED
    return keyed and found.status == "unknown" and not claim.over


logger = structlog.get_logger(__name__)


def run(execution_id: str) -> None:
    """Take an execution and see it through, as far as this process lives.

    Safe to call any number of times at once: only one caller gets the claim.
    """
    failpoints.point("before_claim", execution_id)
    claim = claims.take(execution_id=execution_id, actor=claims.EXECUTOR)
    if claim is None:
        return
    structlog.contextvars.bind_contextvars(
        proposal=claim.execution.proposal_id, execution=execution_id
    )
    failpoints.point("after_claim", execution_id)
    try:
        outcome = _attempt(claim)
    except StaleFence:
        logger.warning("stale_fence", execution=execution_id, fence=claim.fence)
        return
    failpoints.point("before_record", execution_id)
    try:
        _conclude(claim, outcome)
    except StaleFence:
        _too_late(claim, outcome)
        return
    failpoints.point("after_record", execution_id)


def _too_late(claim: Claim, outcome: Outcome | No) -> None:
    """Another attempt took over while this one was held up: what it did is kept."""
    logger.warning("stale_fence", execution=claim.execution.pk, fence=claim.fence)
    if isinstance(outcome, Outcome) and not outcome.looked_up:
        keep_late(
            execution_id=claim.execution.pk,
            fence=claim.fence,
            action_hash=claim.execution.grant.action_hash,
            outcome=outcome,
            actor=claims.EXECUTOR,
        )


def _attempt(claim: Claim) -> Outcome | No:
    """Look up what an earlier attempt did, re-check the world, perform."""
    found = ask_first(claim)
    if found is not None:
        denied = denies(claim, found)
        if not denied and not may_repeat(claim, found):  # guard: found-once
            return found
        if claim.over:
            return No(claim.over, "It never ran, and nothing is begun any more.")
        claim = replace(claim, untouched=denied)
    no = rechecks.check(claim.execution, claim.definition)
    if no is not None and claim.untouched:
        return no
    if no is not None and no.code != "precondition":
        return Outcome("unknown", code=no.code, detail=no.detail)
    # A keyed provider answers a repeated key from its memory, so a state that our
    # own earlier attempt changed is no reason to stop here.
    failpoints.point("rechecked", claim.execution.pk)
    return _perform(claim)


def _perform(claim: Claim) -> Outcome | No:
    no = note_outside()
    leases.check_held(claim)
    # guard: at-last
    no = no or rechecks.at_last(claim.execution)  # nothing is asked after this [I24]
    if no is not None:
        doubt = Outcome("unknown", code=no.code, detail=no.detail)
        return no if claim.untouched else doubt
    failpoints.point("before_effect", claim.execution.pk)
    outcome = executors.perform(claim.definition, claim.call)
    failpoints.point("after_effect", claim.execution.pk)
    if outcome.leaves_earlier_open and not claim.untouched:  # guard: earlier-open
        return Outcome("unknown", code=outcome.code, detail=outcome.detail)
    return outcome


def note_outside() -> No | None:
    """Why nothing may be begun: what cannot be written down beside the database could
    be forgotten with it."""
    try:
        leases.note_outside()
    except OSError as error:
        logger.error("epoch.not_written", error=str(error))
        return No("unwritten", "This host cannot write its note of it.", True, True)
    return None


def _conclude(claim: Claim, outcome: Outcome | No) -> None:
    if isinstance(outcome, No):
        refuse(execution_id=claim.execution.pk, fence=claim.fence, no=outcome)
        return
    record(
        execution_id=claim.execution.pk,
        fence=claim.fence,
        outcome=outcome,
        actor=claims.EXECUTOR,
    )

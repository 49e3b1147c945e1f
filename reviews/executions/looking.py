"""What an earlier attempt did, asked of its service before there is another."""

from __future__ import annotations

from journal import failpoints
from policies.choices import ExecutionClass
from reviews import executors
from reviews.grants import approved_tool

from ..executors import Outcome
from .claims import Claim


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

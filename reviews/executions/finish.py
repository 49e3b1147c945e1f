"""The endings of an execution: finished, UNKNOWN, or REFUSED before an effect
(gate.md section 7). The functions are steps; the caller holds the execution's lock."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from journal import log
from policies import facts
from reviews import transitions
from reviews.alarms import standing
from reviews.choices import ExecutionStatus, GrantStatus
from reviews.grants import uncertain
from reviews.models import Execution

from .rechecks import Refusal

EXECUTOR_ACTOR = uncertain.EXECUTOR_ACTOR
# From an unknown outcome to the first look-up: by then the attempt itself is over.
FIRST_LOOK_UP = timedelta(seconds=30)


def finish_execution(
    execution: Execution,
    event: str,
    actor: log.Actor,
    now: datetime,
    values: dict[str, Any],
    **data: Any,
) -> None:
    """End the execution by `event`: end its lease, set `finished_at` and the columns in
    `values`. `data` goes to the log record."""
    transitions.execution.apply(
        execution,
        event,
        actor=actor,
        now=now,
        changes={"lease_until": None, "finished_at": now, **values},
        data={"execution": execution.pk, "fence": execution.fence, **data},
    )


def mark_unknown(
    execution: Execution,
    code: str,
    detail: str,
    now: datetime,
    actor: log.Actor = EXECUTOR_ACTOR,
) -> None:
    """Mark a claimed execution as UNKNOWN and schedule its first look-up."""
    why = uncertain.UncertainOutcome(code, detail, actor)
    uncertain.mark_claimed_unknown(execution, why, now, ask_at=now + FIRST_LOOK_UP)


def refuse_execution(execution: Execution, no: Refusal, now: datetime) -> None:
    """Mark the execution as REFUSED, end its grant and release its sums. A queued
    execution that came back with a backup may have run, so it becomes UNKNOWN."""
    queued = execution.status == ExecutionStatus.QUEUED
    doubt = uncertain.find_uncertain_outcome(execution) if queued else None
    if doubt is not None:
        uncertain.mark_unattempted_unknown(execution, doubt, now)
        return
    if execution.grant.status == GrantStatus.LIVE:
        event = "expire" if no.code == "window_closed" else "revoke"
        transitions.grant.apply(execution.grant, event, actor=EXECUTOR_ACTOR, now=now)
    finish_execution(
        execution,
        "refuse",
        EXECUTOR_ACTOR,
        now,
        {"code": no.code, "detail": no.detail},
        code=no.code,
    )
    facts.release_observations(execution.proposal_id)
    standing.raise_for_refusal(execution, code=no.code, now=now)


def refuse_after_window(execution: Execution, now: datetime) -> None:
    """Refuse an execution that is still queued when its execution window ends."""
    refuse_execution(
        execution, Refusal("window_closed", "The execution window is over."), now
    )

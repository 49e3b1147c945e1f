"""The endings of an execution: finished, UNKNOWN, or REFUSED before an effect. The
functions are steps; the caller holds the execution's lock."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from journal import log
from reviews import transitions
from reviews.alarms import standing
from reviews.choices import ExecutionStatus
from reviews.grants import grants, uncertain
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
    uncertain.mark_unknown(execution, why, now, ask_at=now + FIRST_LOOK_UP)


def refuse_execution(execution: Execution, refusal: Refusal, now: datetime) -> None:
    """Mark the execution as REFUSED for a reason that the system found, and raise the
    alarm that belongs to it. A queued execution that came back with a backup may have
    run, so it becomes UNKNOWN."""
    queued = execution.status == ExecutionStatus.QUEUED
    doubt = uncertain.find_uncertain_outcome(execution) if queued else None
    if doubt is not None:
        uncertain.mark_unknown(execution, doubt, now)
        return
    data = {"execution": execution.pk, "fence": execution.fence, "code": refusal.code}
    grants.refuse_execution(
        execution, refusal.code, refusal.detail, now, EXECUTOR_ACTOR, data
    )
    standing.raise_for_refusal(execution, code=refusal.code, now=now)

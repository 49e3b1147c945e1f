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

from .rechecks import No

EXECUTOR = uncertain.EXECUTOR
# From an unknown outcome to the first look-up: by then the attempt itself is over.
FIRST_LOOK_UP = timedelta(seconds=30)


def finish(
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


def lose(
    execution: Execution,
    code: str,
    detail: str,
    now: datetime,
    actor: log.Actor = EXECUTOR,
) -> None:
    """Mark a claimed execution as UNKNOWN and schedule its first look-up."""
    why = uncertain.Doubt(code, detail, actor)
    uncertain.forget(execution, why, now, ask_at=now + FIRST_LOOK_UP)


def refuse(execution: Execution, no: No, now: datetime) -> None:
    """Mark the execution as REFUSED, end its grant and release its sums. A queued
    execution that came back with a backup may have run, so it becomes UNKNOWN."""
    queued = execution.status == ExecutionStatus.QUEUED
    doubt = uncertain.of_restore(execution) if queued else None
    if doubt is not None:
        uncertain.lose(execution, doubt, now)
        return
    if execution.grant.status == GrantStatus.LIVE:
        event = "expire" if no.code == "window_closed" else "revoke"
        transitions.grant.apply(execution.grant, event, actor=EXECUTOR, now=now)
    finish(
        execution,
        "refuse",
        EXECUTOR,
        now,
        {"code": no.code, "detail": no.detail},
        code=no.code,
    )
    facts.release(execution.proposal_id)
    standing.refused(execution, code=no.code, now=now)


def close_window(execution: Execution, now: datetime) -> None:
    """Refuse an execution that is still queued when its execution window ends."""
    refuse(execution, No("window_closed", "The execution window is over."), now)

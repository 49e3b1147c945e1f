"""What ends an execution, or keeps it from ever being claimed (gate.md section 7)."""

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
# After an outcome became unknown: what was under way then is over by now.
FIRST_LOOK_UP = timedelta(seconds=30)


def finish(
    execution: Execution,
    event: str,
    actor: log.Actor,
    now: datetime,
    values: dict[str, Any],
    **data: Any,
) -> None:
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
    why = uncertain.Doubt(code, detail, actor)
    uncertain.forget(execution, why, now, ask_at=now + FIRST_LOOK_UP)


def refuse(execution: Execution, no: No, now: datetime) -> None:
    """Nothing of it happens; what came back with a backup may have, and is unknown."""
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
    """What is still queued when its window ends never runs."""
    refuse(execution, No("window_closed", "The execution window is over."), now)

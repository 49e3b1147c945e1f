"""What may have happened without an attempt that we know of: it is never begun, refused
or called untouched, only UNKNOWN, and whoever can say what became of it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from journal import log
from policies import facts
from reviews import inherited, transitions
from reviews.choices import ExecutionStatus, GrantStatus
from reviews.models import Execution

from . import approved_tool, sequence

RESTORE = log.Actor("system", "restore")
EXECUTOR = log.Actor("system", "executor")


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why nobody knows. Unless it `asks`, no service is asked by itself, and what one
    says of these bytes settles nothing."""

    code: str
    detail: str
    actor: log.Actor
    asks: bool = True


RESTORED = Doubt(
    "restored", "The database was restored: it may have run already.", RESTORE
)
OTHER_VERSION = Doubt(
    "other_version",
    "The database was restored, and this version was made afterwards: an earlier one,"
    " under another key, may have run.",
    RESTORE,
    asks=False,
)
REPORTED = Doubt(
    "reported_late", "A late report says that it happened already.", EXECUTOR
)


def of_restore(execution: Execution) -> Doubt | None:
    """Why what came back with a backup may have run in the history that is lost; None
    for what did not come back, or was in doubt since: then people have been asked."""
    if not inherited.is_inherited(execution) or inherited.is_answered(execution):
        return None
    # guard: revised-since
    return OTHER_VERSION if inherited.is_revised_since(execution) else RESTORED


def lose(execution: Execution, why: Doubt, now: datetime) -> None:
    """UNKNOWN without an attempt. Caller holds the execution's lock; it is QUEUED or
    CLAIMED."""
    grant = execution.grant
    if grant.status == GrantStatus.LIVE:
        transitions.grant.apply(grant, "spend", actor=why.actor, now=now)
    said = {"execution": execution.pk, "code": why.code}
    if execution.status == ExecutionStatus.QUEUED:
        transitions.execution.apply(
            execution,
            "claim",
            actor=why.actor,
            now=now,
            changes={"fence": execution.fence + 1, "lease_until": now},
            data=said,
        )
    forget(execution, why, now, ask_at=now if why.asks else None)


def forget(
    execution: Execution, why: Doubt, now: datetime, ask_at: datetime | None
) -> None:
    """CLAIMED -> UNKNOWN; its service is asked at `ask_at`, where it can be. Caller
    holds the execution's lock."""
    transitions.execution.apply(
        execution,
        "lose",
        actor=why.actor,
        now=now,
        changes={
            "lease_until": None,
            "code": why.code,
            "detail": why.detail,
            "unknown_at": now,
            "ask_at": ask_at if approved_tool.can_be_asked(execution) else None,
        },
        data={"execution": execution.pk, "fence": execution.fence, "code": why.code},
    )
    facts.count_effect(execution.proposal_id, at=now)  # or later, and a report says so
    sequence.halt(execution, now)

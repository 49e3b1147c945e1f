"""What may have happened without an attempt that we know of: it is never begun, refused
or called untouched, only UNKNOWN, and whoever can say what became of it is asked.

What came back with a backup (proof.md T25). It may have run in the history that is
lost, so nothing of it is ever called untouched, refused or lost: only unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from journal import log, restore_epochs
from policies import facts
from reviews import transitions
from reviews.choices import ExecutionStatus, GrantStatus, RequestStatus
from reviews.models import ApprovalRequest, Execution, Proposal

from . import approved_tool, sequence


def is_inherited(execution: Execution) -> bool:
    """Whether its proposal was made before the present epoch began; true of all while
    two people have not looked."""
    return restore_epochs.inherited(execution.proposal.created_at)


def release(proposals: Sequence[str]) -> None:
    """Nobody will say yes to these any more, so they weigh in no sum; but what came
    back with a backup weighs on, for it may have been approved and may have run.

    Caller holds a transaction.
    """
    until = restore_epochs.inherited_until()
    if until is None:
        return facts.release_many(proposals)
    own = Proposal.objects.filter(pk__in=proposals, created_at__gte=until)
    return facts.release_many(list(own.values_list("pk", flat=True)))


def is_answered(execution: Execution) -> bool:
    """Whether it was in doubt since the present epoch began: then whoever can say what
    became of it before has been asked."""
    at = execution.unknown_at
    return at is not None and not restore_epochs.inherited(at)


def is_revised_since(execution: Execution) -> bool:
    """Whether its bytes were made after the present epoch began: what may have run
    before were others, under another key."""
    revision = execution.grant.revision
    return revision.number > 1 and not restore_epochs.inherited(revision.created_at)


def may_have_run(request: ApprovalRequest) -> bool:
    """Whether a request without a yes came back open with a backup: in the history that
    is lost it may have had one. By what this process saw last: no query."""
    return _came_back(request, restore_epochs.known.restores)


def may_have_run_by_now(request: ApprovalRequest) -> bool:
    """The same, asked of the database: by processes that watch nothing."""
    return _came_back(request, restore_epochs.restores())


def _came_back(
    request: ApprovalRequest, restores: Iterable[tuple[datetime, datetime | None]]
) -> bool:
    if request.status == RequestStatus.AUTHORIZED:
        return False
    made, over = request.proposal.created_at, request.settled_at
    return any(
        (began is None or made < began) and (over is None or over >= noticed)
        for noticed, began in restores
    )


def said_of(request: ApprovalRequest) -> str:
    """What is true of the effect of a request that ended without a yes."""
    if may_have_run(request):
        return "It may have run before the database was restored."
    return "Nothing was executed."


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
    if not is_inherited(execution) or is_answered(execution):
        return None
    # guard: revised-since
    return OTHER_VERSION if is_revised_since(execution) else RESTORED


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

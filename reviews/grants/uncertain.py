"""Executions that may have run without an attempt on record.

After a restore from a backup, an older execution may have run in the lost history; a
late report may also say so. Such an execution is not started, refused or described as
not executed. It becomes UNKNOWN, and a look-up or a person settles it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from journal import log, restore_epochs
from journal.restore_epochs import BackupCutoff
from policies import facts
from reviews import transitions
from reviews.choices import ExecutionStatus, GrantStatus, RequestStatus
from reviews.models import ApprovalRequest, Execution, Proposal

from . import sequence


def predates_restore(execution: Execution, backup: BackupCutoff | None = None) -> bool:
    """Whether its proposal is older than the present epoch. True for every execution
    while a restore waits for two people to confirm it. Takes one query unless `backup`
    is given."""
    cutoff = backup or restore_epochs.load_backup_cutoff()
    return cutoff.covers_row(execution.proposal.created_at)


def release_sums(proposals: Sequence[str]) -> None:
    """Remove proposals that ended without approval from the sums. Proposals older than
    the present epoch stay in the sums, because they may have been approved and run in
    the lost history. The caller is in a transaction."""
    until = restore_epochs.load_backup_cutoff().until
    if until is None:
        return facts.release_many(proposals)
    own = Proposal.objects.filter(pk__in=proposals, created_at__gte=until)
    return facts.release_many(list(own.values_list("pk", flat=True)))


def may_have_run(request: ApprovalRequest) -> bool:
    """Whether a request that was not approved may have been approved and run after all.
    True when it was open at a restore: the lost history may hold an approval. Uses the
    restores this process saw last, without a query."""
    return _was_open_at_restore(request, restore_epochs.last_status.restores)


def may_have_run_uncached(request: ApprovalRequest) -> bool:
    """The same with a query, for processes that do not watch for restores."""
    return _was_open_at_restore(request, restore_epochs.list_restores())


def _was_open_at_restore(
    request: ApprovalRequest, restores: Iterable[tuple[datetime, datetime | None]]
) -> bool:
    if request.status == RequestStatus.AUTHORIZED:
        return False
    made, over = request.proposal.created_at, request.settled_at
    return any(
        (began is None or made < began) and (over is None or over >= noticed)
        for noticed, began in restores
    )


def describe_effect(request: ApprovalRequest) -> str:
    """A sentence about the effect of a request that ended without approval."""
    if may_have_run(request):
        return "It may have run before the database was restored."
    return "Nothing was executed."


RESTORE_ACTOR = log.Actor("system", "restore")
EXECUTOR_ACTOR = log.Actor("system", "executor")


@dataclass(frozen=True, slots=True)
class UncertainOutcome:
    """Why the outcome of an execution is unknown. `asks` says that the service is asked
    automatically. Without it no look-up runs by itself, and what the service says about
    these bytes does not settle the outcome."""

    code: str
    detail: str
    actor: log.Actor
    asks: bool = True


RESTORED = UncertainOutcome(
    "restored", "The database was restored: it may have run already.", RESTORE_ACTOR
)
OTHER_VERSION = UncertainOutcome(
    "other_version",
    "The database was restored, and this version was made afterwards: an earlier one,"
    " under another key, may have run.",
    RESTORE_ACTOR,
    asks=False,
)
REPORTED = UncertainOutcome(
    "reported_late", "A late report says that it happened already.", EXECUTOR_ACTOR
)


def find_uncertain_outcome(
    execution: Execution, backup: BackupCutoff | None = None
) -> UncertainOutcome | None:
    """Why an execution that predates a restore may have run in the lost history. None
    when it does not predate one, or when its outcome became unknown since then: its
    service or people have been asked already what became of it."""
    backup = backup or restore_epochs.load_backup_cutoff()
    unknown_at = execution.unknown_at
    asked = unknown_at is not None and not backup.covers_row(unknown_at)
    if asked or not predates_restore(execution, backup):
        return None
    revision = execution.grant.revision
    revised = revision.number > 1 and not backup.covers_row(revision.created_at)
    # guard: revised-since
    return OTHER_VERSION if revised else RESTORED


def mark_unknown(
    execution: Execution,
    why: UncertainOutcome,
    now: datetime,
    ask_at: datetime | None = None,
) -> None:
    """Mark a QUEUED or CLAIMED execution UNKNOWN, spend its grant and halt its batch.
    Its service is asked at `ask_at`, or at once if `why.asks`, provided that the tool
    defines a look-up. The caller holds the execution's lock."""
    grant = execution.grant
    if grant.status == GrantStatus.LIVE:
        transitions.grant.apply(grant, "spend", actor=why.actor, now=now)
    if execution.status == ExecutionStatus.QUEUED:
        transitions.execution.apply(
            execution,
            "claim",
            actor=why.actor,
            now=now,
            changes={"fence": execution.fence + 1, "lease_until": now},
            data={"execution": execution.pk, "code": why.code},
        )
    if ask_at is None and why.asks:
        ask_at = now
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
            "ask_at": ask_at if execution.has_look_up else None,
        },
        data={"execution": execution.pk, "fence": execution.fence, "code": why.code},
    )
    facts.mark_effect_ran(execution.proposal_id, at=now)  # a late report may correct it
    sequence.halt_batch(execution, now)

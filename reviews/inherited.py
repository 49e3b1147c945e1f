"""What came back with a backup (proof.md T25). It may have run in the history that is
lost, so nothing of it is ever called untouched, refused or lost: only unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from journal import restore_epochs
from policies import facts

from .choices import RequestStatus
from .models import ApprovalRequest, Execution, Proposal


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

"""Tasks that run executions, look up unknown outcomes and audit refused effects."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from journal import dispatch, outbox, restore_epochs
from journal.errors import DatabaseRestored, NotFound
from reviews import deadlines
from reviews.executions import reconcile, repairs, run
from reviews.grants import sequence

from .named import task

# After this time in the queue, the nudge of an execution must have been lost.
NUDGE_GRACE = timedelta(seconds=3)


@task(throws=(DatabaseRestored,))
def execute(message_id: int) -> None:
    """Run an execution that was just queued; its outbox message is the nudge."""
    with outbox.consume(message_id) as message:
        if message is not None:
            run.run_execution(message.subject)
            _enqueue_executions(sequence.find_next_executions(message.subject))


@task(throws=(DatabaseRestored,))
def run_execution(execution_id: str) -> None:
    """Run an execution that a sweep found without a worker."""
    with suppress(NotFound):  # a forged message may name an id that does not exist
        run.run_execution(execution_id)
    _enqueue_executions(sequence.find_next_executions(execution_id))


@task()
def queue_executions() -> int:
    """Enqueue the tasks of queued executions that are due. Returns how many."""
    return _enqueue_executions(deadlines.list_overdue_executions(quiet=NUDGE_GRACE))


@task()
def recover_leases() -> int:
    """Enqueue the tasks of executions whose lease lapsed. Returns how many."""
    return _enqueue_executions(deadlines.list_lapsed_executions())


def _enqueue_executions(execution_ids: list[str]) -> int:
    if execution_ids and restore_epochs.find_halt_reason():
        return 0  # no claim is allowed until the restored database was checked
    return dispatch.fill_queue("hitl.tasks.run_execution", execution_ids)


@task()
def look_up_unknown() -> int:
    """Enqueue the look-ups of unknown outcomes that are due. Returns how many."""
    return dispatch.fill_queue("hitl.tasks.look_up_one", reconcile.list_due_look_ups())


@task()
def look_up_one(execution_id: str) -> None:
    """Look up one unknown outcome. Never performs an effect."""
    with suppress(NotFound):  # a forged message may name an id that does not exist
        reconcile.look_up_if_due(execution_id)


@task()
def lapse_repairs() -> int:
    """End repairs that nobody confirmed in time. Returns how many."""
    return repairs.lapse_repairs()


@task()
def audit_refused() -> int:
    """Enqueue the audits that are due. Returns how many."""
    return dispatch.fill_queue("hitl.tasks.audit_one", reconcile.list_due_audits())


@task()
def audit_one(execution_id: str) -> None:
    """Audit one execution: ask its service whether the effect happened anyway."""
    with suppress(NotFound):  # a forged message may name an id that does not exist
        reconcile.audit_execution(execution_id)

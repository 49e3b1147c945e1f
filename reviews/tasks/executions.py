"""From an authorised execution to its one run, and what became of those nobody knows
of."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from journal import dispatch, outbox, restore_epochs
from journal.errors import NotFound, Restored
from reviews import deadlines
from reviews.executions import reconcile, repairs, run
from reviews.grants import sequence

from .named import task

# A queued execution this old was not reached by its nudge.
QUIET = timedelta(seconds=3)


@task(throws=(Restored,))
def execute(message_id: int) -> None:
    """The nudge of a queued execution."""
    with outbox.consume(message_id) as message:
        if message is not None:
            run.run(message.subject)
            _hand_over(sequence.after(message.subject))


@task(throws=(Restored,))
def run_execution(execution_id: str) -> None:
    """The sweep's hand-over of an execution that nobody is on."""
    with suppress(NotFound):  # a forged message names what is not there
        run.run(execution_id)
    _hand_over(sequence.after(execution_id))


@task()
def queue_executions() -> int:
    """Hand over what is due and queued; how many."""
    return _hand_over(deadlines.queued_executions(quiet=QUIET))


@task()
def recover_leases() -> int:
    """Hand over what a dead worker or agent left claimed; how many."""
    return _hand_over(deadlines.lapsed_executions())


def _hand_over(execution_ids: list[str]) -> int:
    if execution_ids and restore_epochs.why():
        return 0  # each would only be refused
    return dispatch.hand_over("reviews.tasks.run_execution", execution_ids)


@task()
def look_up_unknown() -> int:
    """Hand over what nobody knows of and may be asked about now; how many."""
    return dispatch.hand_over("reviews.tasks.look_up_one", reconcile.due())


@task()
def look_up_one(execution_id: str) -> None:
    """Ask the service of one what became of it. Never performs anything."""
    with suppress(NotFound):  # a forged message names what is not there
        reconcile.look_up(execution_id)


@task()
def lapse_repairs() -> int:
    """End what nobody confirmed in time."""
    return repairs.lapse_repairs()


@task()
def audit_refused() -> int:
    """Hand over what was refused and is to be asked after now; how many."""
    return dispatch.hand_over("reviews.tasks.audit_one", reconcile.due_audits())


@task()
def audit_one(execution_id: str) -> None:
    """Ask the service of one whether it happened all the same."""
    with suppress(NotFound):  # a forged message names what is not there
        reconcile.look(execution_id)

"""Celery tasks of the gate. A task gets an id and calls operations. All state is in the
database, so a lost, doubled or forged message changes nothing.

Outbox rows, the beat schedule and workers of another release know a task by the name of
its function here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import wraps

from celery import shared_task
from django.conf import settings
from django.utils.module_loading import import_string

from agents import setting_changes
from assurance import insertion, library, second_reviews
from assurance.datasets import consent, files
from desk.log import exports, search_entries
from journal import dispatch, failpoints, outbox, restore_epochs, sweeps, transactions
from journal.errors import AlreadyDecided, Conflict, DatabaseRestored, NotFound
from journal.models import OutboxMessage
from notifications import delivery, plan
from reviews import canary_verdicts, deadlines, recovery, retention, text_removal
from reviews.administration import authority
from reviews.alarms import standing
from reviews.alarms import watch as alarms
from reviews.batches import formation
from reviews.choices import Scope
from reviews.decisions import drafts, revoke
from reviews.evidence import retention as evidence_retention
from reviews.executions import reconcile, repairs, run
from reviews.grants import sequence
from reviews.holds import rows
from reviews.models import Stop
from reviews.questions import questions
from reviews.requests import proposals
from reviews.stops import incidents, scope
from stats import alerts, rollups

from . import worker_register

# After this time in the queue, the nudge of an execution must have been lost.
NUDGE_GRACE = timedelta(seconds=3)
MOST_CHUNKS = 20  # keeps a long backlog within one task's time limit
BETWEEN_SWEEPS_S = 0.1


def takes_message(work: Callable[[OutboxMessage], None]) -> Callable[[int], None]:
    """A task that claims the outbox message of an id, and does nothing where another
    worker has it or has done it."""

    @wraps(work)
    def consume(message_id: int) -> None:
        with outbox.consume(message_id) as message:
            if message is not None:
                work(message)

    return consume


# Executions


@shared_task(throws=(DatabaseRestored,))
@takes_message
def execute(message: OutboxMessage) -> None:
    """Run an execution that was just queued; its outbox message is the nudge."""
    run.run_execution(message.subject)
    _enqueue_executions(sequence.find_next_executions(message.subject))


@shared_task(throws=(DatabaseRestored,))
def run_execution(execution_id: str) -> None:
    """Run an execution that a sweep found without a worker."""
    with suppress(NotFound):  # a forged message may name an id that does not exist
        run.run_execution(execution_id)
    _enqueue_executions(sequence.find_next_executions(execution_id))


@shared_task
def queue_executions() -> int:
    """Enqueue the tasks of queued executions that are due. Returns how many."""
    return _enqueue_executions(deadlines.list_overdue_executions(quiet=NUDGE_GRACE))


@shared_task
def recover_leases() -> int:
    """Enqueue the tasks of executions whose lease lapsed. Returns how many."""
    return _enqueue_executions(deadlines.list_lapsed_executions())


def _enqueue_executions(execution_ids: list[str]) -> int:
    if execution_ids and restore_epochs.find_halt_reason():
        return 0  # no claim is allowed until the restored database was checked
    return dispatch.fill_queue("hitl.tasks.run_execution", execution_ids)


@shared_task
def look_up_unknown() -> int:
    """Enqueue the look-ups of unknown outcomes that are due. Returns how many."""
    return dispatch.fill_queue("hitl.tasks.look_up_one", reconcile.list_due_look_ups())


@shared_task
def look_up_one(execution_id: str) -> None:
    """Look up one unknown outcome. Never performs an effect."""
    with suppress(NotFound):  # a forged message may name an id that does not exist
        reconcile.look_up_if_due(execution_id)


@shared_task
def lapse_repairs() -> int:
    """End repairs that nobody confirmed in time. Returns how many."""
    return repairs.lapse_repairs()


@shared_task
def audit_refused() -> int:
    """Enqueue the audits that are due. Returns how many."""
    return dispatch.fill_queue("hitl.tasks.audit_one", reconcile.list_due_audits())


@shared_task
def audit_one(execution_id: str) -> None:
    """Audit one execution: ask its service whether the effect happened anyway."""
    with suppress(NotFound):  # a forged message may name an id that does not exist
        reconcile.audit_execution(execution_id)


# Notifications


@shared_task
@takes_message
def notify_people(message: OutboxMessage) -> None:
    """Notify people of any event in `notifications.events.EVENTS`, on every
    channel."""
    plan.notify_of_event(message)


@shared_task
@takes_message
def send_notice(message: OutboxMessage) -> None:
    """Send a delayed notice, or one that a channel refused, now that it is due."""
    delivery.deliver_due_notice(message.subject)


@shared_task
@takes_message
def send_digest(message: OutboxMessage) -> None:
    """Send one person's digests."""
    delivery.send_digest(message.subject)


@shared_task
@takes_message
def send_test(message: OutboxMessage) -> None:
    delivery.send_test_notice(message.subject, **message.facts)


# Deadlines, holds, incidents, batches, exports, stops, alarms and clean-up


@shared_task
def close_recall_windows() -> int:
    """Authorize requests whose recall window is over. Returns how many."""
    with suppress(DatabaseRestored):
        return _repeat_in_chunks(deadlines.close_recall_windows)
    return 0


@shared_task
def expire_due() -> int:
    """Expire requests that nobody decided in time, and questions that nobody answered.
    Returns how many."""
    with suppress(DatabaseRestored):
        return _repeat_in_chunks(deadlines.expire_chunk) + _repeat_in_chunks(
            questions.expire_chunk
        )
    return 0


@shared_task
def remind_before_deadline() -> int:
    """Publish reminders of requests that are near their deadline. Returns how many."""
    return deadlines.enqueue_reminders()


@shared_task
def lapse_holds() -> int:
    """Free requests whose hold lapsed while another person waits for them or did not
    answer an offer."""
    return rows.free_lapsed_holds()


@shared_task
def hold_deadlines() -> int:
    """Move deadlines that an incident freezes, and let the others run again."""
    return _repeat_in_chunks(incidents.advance_frozen_deadlines)


@shared_task
@takes_message
def freeze_deadlines(message: OutboxMessage) -> None:
    """Freeze deadlines right after an incident was declared; its outbox message is the
    nudge."""
    _repeat_in_chunks(incidents.advance_frozen_deadlines)


def _repeat_in_chunks(operation: deadlines.Sweep) -> int:
    """Repeat an operation until it finds less than a chunk. Returns the total."""
    total = 0
    for _ in range(MOST_CHUNKS):
        changed = operation()
        total += len(changed)
        if len(changed) < deadlines.CHUNK:
            break
    return total


@shared_task
@takes_message
def form_batch(message: OutboxMessage) -> None:
    """Batch a new request with similar ones; its outbox message is the nudge."""
    formation.form_batch_around(message.subject)


@shared_task
def tidy_batches() -> int:
    """Tidy the open batches, and batch requests that were missed. Returns how many
    batches changed."""
    return formation.tidy_open_batches() + len(formation.form_missed_batches())


@shared_task
@takes_message
def write_export(message: OutboxMessage) -> None:
    """Write an export of the log for a few seconds; if more is left, publish another
    outbox message for the rest."""
    if not exports.write_export(message.subject):
        exports.enqueue_rest(message.subject)


@shared_task
@takes_message
def write_dataset(message: OutboxMessage) -> None:
    """Write a dataset for a few seconds; if more is left, publish another outbox
    message for the rest."""
    if not files.write_dataset(message.subject):
        files.enqueue_rest(message.subject)


@shared_task
def drop_old_exports() -> int:
    """Delete the old files of exports and datasets. Returns the number of parts."""
    return exports.delete_old_files() + files.delete_old_datasets()


@shared_task
def lapse_unanswered() -> int:
    """End the datasets, and the changes of the library of defects, of people's
    authority and of agents' settings, that no second administrator answered in time.
    Returns how many."""
    return (
        consent.lapse_datasets()
        + library.lapse_changes()
        + authority.lapse_changes()
        + setting_changes.lapse_changes()
    )


@shared_task
@takes_message
def enforce_stop(message: OutboxMessage) -> None:
    """Withdraw and refuse what waits under a new Stop row. Repeat until every
    transaction that was open when the stop began has ended: it may have checked the
    stops before, and submit something afterwards."""
    horizon = transactions.read_xid_horizon()
    # If the task's time limit ends this loop, the outbox repeats the task.
    while not _enforce_once(message.subject, horizon):
        time.sleep(BETWEEN_SWEEPS_S)


def _enforce_once(stop_id: str, horizon: int) -> bool:
    """Enforce the stop once. Returns whether no further run is needed."""
    # Ask before the search, which then finds all that those transactions wrote.
    over = transactions.have_transactions_ended(horizon)
    stop = Stop.objects.get(pk=stop_id)
    due = scope.list_proposals_to_withdraw(stop)
    sweeps.run_each(lambda pk: _withdraw_or_revoke(pk, stop), due, must_repeat=True)
    _repeat_in_chunks(lambda: questions.withdraw_stopped(stop))
    failpoints.point("stop_enforced", stop_id)
    return over


def _withdraw_or_revoke(proposal_id: str, stop: Stop) -> None:
    """Under a stop of a reviewer, revoke their approval; under any other stop, withdraw
    the proposal. Does nothing if it was settled or claimed since it was listed."""
    with suppress(AlreadyDecided, Conflict):
        if stop.scope == Scope.REVIEWER:
            revoke.revoke_approval(proposal_id=proposal_id, reviewer=stop.key)
        else:
            proposals.withdraw_stopped_proposal(proposal_id=proposal_id, code="stopped")


@shared_task
def watch_epoch() -> str:
    """Check whether an older database was restored in place of the current one."""
    return recovery.watch_for_restore()


@shared_task
def watch() -> int:
    """Run the alarm sweep, raise an alarm about dropped broker messages, and forget
    workers that fell silent long ago. Returns how many alarms the sweep changed."""
    if count := dispatch.count_dropped():
        standing.raise_for_dropped_messages(count=count)
        dispatch.subtract_dropped(count)
    worker_register.forget_silent()
    return alarms.sweep_alarms()


@shared_task
def pulse_effects() -> None:
    """Show that a worker serves the queue of effects: Celery notes that this ran."""


@shared_task
def drop_old_drafts() -> int:
    """Delete drafts older than a day. Returns how many."""
    return drafts.delete_old_drafts()


@shared_task
def enter_searched() -> int:
    """Add new revisions to the search index of the log. Returns how many."""
    return search_entries.add_missing_entries()


@shared_task
def prune() -> int:
    """Delete old notices, sessions and files that nobody named, erase old results and
    files, and remove old texts. Returns how many."""
    gone = retention.delete_old_notices()
    gone += sweeps.delete_in_chunks(
        retention.delete_expired_sessions, whole=retention.CHUNK
    )
    for step in (
        evidence_retention.delete_unused_files,
        evidence_retention.erase_files,
    ):
        gone += sweeps.delete_in_chunks(step, whole=evidence_retention.CHUNK)
    gone += sweeps.delete_in_chunks(retention.erase_results, whole=retention.CHUNK)
    return gone + text_removal.remove_old_texts()


@shared_task
def update_statistics() -> int:
    """Compute the statistics of the days that changed, and raise or close the alarms of
    the policy's alerts. Returns how many days."""
    days = rollups.update_rollups()
    alerts.sweep_alerts()
    return days


@shared_task
def run_canaries() -> int:
    """End canaries that nobody decided, and plant those that are due. Returns how many
    were planted."""
    canary_verdicts.end_lapsed_canaries()
    return insertion.insert_due_canaries()


@shared_task
def choose_second_reviews() -> int:
    """Choose the decisions that are reviewed a second time. Returns how many."""
    return second_reviews.choose_second_reviews()


@shared_task
def export_traces() -> int:
    """Export the spans of proposals that ended. Returns how many log records were
    read."""
    if not settings.COUNTERSEAL.exports_traces:
        return 0
    # OpenTelemetry's exporter takes 0.3 s to import, so only its users wait for it.
    return int(import_string("reviews.tracing.export.export_traces")())

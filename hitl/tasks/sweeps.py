"""Tasks that run periodically or enforce what a person started: deadlines, recall
windows, holds, incidents, batches, log exports, stops, alarms and clean-up."""

from __future__ import annotations

import time
from contextlib import suppress

from django.conf import settings
from django.utils.module_loading import import_string

from assurance import insertion, library, second_reviews
from assurance.datasets import consent, files
from desk.log import exports, search_entries
from journal import dispatch, failpoints, outbox, sweeps, transactions
from journal.errors import AlreadyDecided, Conflict, DatabaseRestored
from reviews import canary_verdicts, deadlines, recovery, retention
from reviews.alarms import standing
from reviews.alarms import watch as alarms
from reviews.batches import formation
from reviews.choices import Scope
from reviews.decisions import drafts, revoke
from reviews.holds import rows
from reviews.models import Stop
from reviews.requests import proposals
from reviews.stops import incidents, scope
from stats import alerts, rollups

from .named import task

MOST_CHUNKS = 20  # keeps a long backlog within one task's time limit


@task()
def close_recall_windows() -> int:
    """Authorize requests whose recall window is over. Returns how many."""
    with suppress(DatabaseRestored):
        return _repeat_in_chunks(deadlines.close_recall_windows)
    return 0


@task()
def expire_due() -> int:
    """Expire requests that nobody decided in time. Returns how many."""
    with suppress(DatabaseRestored):
        return _repeat_in_chunks(deadlines.expire_chunk)
    return 0


@task()
def remind_before_deadline() -> int:
    """Publish reminders of requests that are near their deadline. Returns how many."""
    return deadlines.enqueue_reminders()


@task()
def lapse_holds() -> int:
    """Free requests whose hold lapsed while another person waits for them or did not
    answer an offer."""
    return rows.free_lapsed_holds()


@task()
def hold_deadlines() -> int:
    """Move deadlines that an incident freezes, and let the others run again."""
    return _repeat_in_chunks(incidents.advance_frozen_deadlines)


@task()
def freeze_deadlines(message_id: int) -> None:
    """Freeze deadlines right after an incident was declared; its outbox message is the
    nudge."""
    with outbox.consume(message_id) as message:
        if message is not None:
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


@task()
def form_batch(message_id: int) -> None:
    """Batch a new request with similar ones; its outbox message is the nudge."""
    with outbox.consume(message_id) as message:
        if message is not None:
            formation.form_batch_around(message.subject)


@task()
def tidy_batches() -> int:
    """Tidy the open batches, and batch requests that were missed. Returns how many
    batches changed."""
    return formation.tidy_open_batches() + len(formation.form_missed_batches())


@task()
def write_export(message_id: int) -> None:
    """Write an export of the log for a few seconds; if more is left, publish another
    outbox message for the rest."""
    with outbox.consume(message_id) as message:
        if message is not None and not exports.write_export(message.subject):
            exports.enqueue_rest(message.subject)


@task()
def write_dataset(message_id: int) -> None:
    """Write a dataset for a few seconds; if more is left, publish another outbox
    message for the rest."""
    with outbox.consume(message_id) as message:
        if message is not None and not files.write_dataset(message.subject):
            files.enqueue_rest(message.subject)


@task()
def drop_old_exports() -> int:
    """Delete the old files of exports and datasets. Returns the number of parts."""
    return exports.delete_old_files() + files.delete_old_datasets()


@task()
def lapse_unanswered() -> int:
    """End the datasets, and the changes of the library of defects, that no second
    administrator answered in time. Returns how many."""
    return consent.lapse_datasets() + library.lapse_changes()


BETWEEN_SWEEPS_S = 0.1


@task()
def enforce_stop(message_id: int) -> None:
    """Withdraw and refuse what waits under a new Stop row. Repeat until every
    transaction that was open when the stop began has ended: it may have checked the
    stops before, and submit something afterwards."""
    with outbox.consume(message_id) as message:
        if message is None:
            return
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


@task()
def watch_epoch() -> str:
    """Check whether an older database was restored in place of the current one."""
    return recovery.watch_for_restore()


@task()
def watch() -> int:
    """Run the alarm sweep, and raise an alarm about dropped broker messages. Returns
    how many alarms the sweep changed."""
    if count := dispatch.count_dropped():
        standing.raise_for_dropped_messages(count=count)
        dispatch.subtract_dropped(count)
    return alarms.sweep_alarms()


@task()
def pulse_effects() -> None:
    """Show that a worker serves the queue of effects: Celery notes that this ran."""


@task()
def drop_old_drafts() -> int:
    """Delete drafts older than a day. Returns how many."""
    return drafts.delete_old_drafts()


@task()
def enter_searched() -> int:
    """Add new revisions to the search index of the log. Returns how many."""
    return search_entries.add_missing_entries()


@task()
def prune() -> int:
    """Delete old notices and sessions, and erase old results. Returns how many."""
    gone = retention.delete_old_notices()
    gone += sweeps.delete_in_chunks(
        retention.delete_expired_sessions, whole=retention.CHUNK
    )
    return gone + sweeps.delete_in_chunks(
        retention.erase_results, whole=retention.CHUNK
    )


@task()
def update_statistics() -> int:
    """Compute the statistics of the days that changed, and raise or close the alarms of
    the policy's alerts. Returns how many days."""
    days = rollups.update_rollups()
    alerts.sweep_alerts()
    return days


@task()
def run_canaries() -> int:
    """End canaries that nobody decided, and plant those that are due. Returns how many
    were planted."""
    canary_verdicts.end_lapsed_canaries()
    return insertion.insert_due_canaries()


@task()
def choose_second_reviews() -> int:
    """Choose the decisions that are reviewed a second time. Returns how many."""
    return second_reviews.choose_second_reviews()


@task()
def export_traces() -> int:
    """Export the spans of proposals that ended. Returns how many log records were
    read."""
    if not settings.COUNTERSEAL.exports_traces:
        return 0
    # OpenTelemetry's exporter takes 0.3 s to import, so only its users wait for it.
    return int(import_string("reviews.tracing.export.export_traces")())

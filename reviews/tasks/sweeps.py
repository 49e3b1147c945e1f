"""What time ends: requests, recall windows, holds; and the incidents that stop the
clock.

Batches form around a new request, and are looked after.

Exports of the log are written piece by piece.

What a new Stop row does to work that is under way.

The house looks after itself: restores, alarms, and what is needed no more.
"""

from __future__ import annotations

import time
from contextlib import suppress

from journal import dispatch, failpoints, outbox, sweeps, transactions
from journal.errors import Conflict, Decided, Restored
from reviews import deadlines, recovery, retention
from reviews.alarms import standing
from reviews.alarms import watch as alarms
from reviews.batches import formation
from reviews.choices import Scope
from reviews.decisions import drafts, revoke
from reviews.desk.log import exports, search_entries
from reviews.holds import rows
from reviews.models import Stop
from reviews.requests import proposals
from reviews.stops import incidents, scope

from .named import task

MOST_CHUNKS = 20  # so that a long backlog stays within one task's time limit


@task()
def close_recall_windows() -> int:
    """Authorise what nobody recalled in time."""
    with suppress(Restored):
        return _in_chunks(deadlines.close_recall_windows)
    return 0


@task()
def expire_due() -> int:
    """End what nobody answered in time."""
    with suppress(Restored):
        return _in_chunks(deadlines.expire_chunk)
    return 0


@task()
def remind_before_deadline() -> int:
    """Promise a reminder for what is near its deadline."""
    return deadlines.remind()


@task()
def lapse_leases() -> int:
    """Free what ran out while somebody waits for it."""
    return rows.lapse_chunk()


@task()
def hold_deadlines() -> int:
    """Keep ahead what an incident freezes, and let run again what it does not."""
    return _in_chunks(incidents.hold_deadlines)


@task()
def freeze_deadlines(message_id: int) -> None:
    """The nudge of a declared incident."""
    with outbox.consume(message_id) as message:
        if message is not None:
            _in_chunks(incidents.hold_deadlines)


def _in_chunks(operation: deadlines.Sweep) -> int:
    """Repeat an operation until it finds less than a chunk."""
    total = 0
    for _ in range(MOST_CHUNKS):
        found = operation()
        total += len(found)
        if len(found) < deadlines.CHUNK:
            break
    return total


@task()
def form_batch(message_id: int) -> None:
    """A request came that may be decided with others like it."""
    with outbox.consume(message_id) as message:
        if message is not None:
            formation.form_around(message.subject)


@task()
def tidy_batches() -> int:
    """See who left a batch, and put together what was missed; how many changed."""
    return formation.tidy_all() + len(formation.form_all())


@task()
def write_export(message_id: int) -> None:
    """One delivery writes for a few seconds; the rest is another promise."""
    with outbox.consume(message_id) as message:
        if message is not None and not exports.write(message.subject):
            exports.go_on(message.subject)


@task()
def drop_old_exports() -> int:
    return exports.drop_old()


BETWEEN_SWEEPS_S = 0.1


@task()
def enforce_stop(message_id: int) -> None:
    """Withdraw and refuse what waits under a new Stop row, and what was being
    submitted as it came: that had looked at the switches before."""
    with outbox.consume(message_id) as message:
        if message is None:
            return
        horizon = transactions.horizon()
        # The task's own time limit ends it; then the outbox asks again.
        while not _enforce(message.subject, horizon):
            time.sleep(BETWEEN_SWEEPS_S)


def _enforce(stop_id: str, horizon: int) -> bool:
    """One sweep; whether it was the last one needed."""
    over = transactions.are_over(horizon)  # asked first: then all it wrote is found
    stop = Stop.objects.get(pk=stop_id)
    for proposal_id in scope.under(stop):
        # Settled or claimed since it was listed: the others still wait.
        with suppress(Decided, Conflict):
            _take_back(proposal_id, stop)
    failpoints.point("stop_enforced", stop_id)
    return over


def _take_back(proposal_id: str, stop: Stop) -> None:
    """A reviewer's approval counts no more; of all else nothing is wanted any more."""
    if stop.scope == Scope.REVIEWER:
        revoke.revoke_approval(proposal_id=proposal_id, reviewer=stop.key)
    else:
        proposals.withdraw_stopped(proposal_id=proposal_id, code="stopped")


@task()
def watch_epoch() -> str:
    """See whether an older database was put in the place of ours."""
    return recovery.watch()


@task()
def watch() -> int:
    """Raise what went against a promise and was not noticed; how many changed."""
    if count := dispatch.dropped():
        standing.dropped(count=count)
        dispatch.forget_dropped(count)
    return alarms.watch()


@task()
def pulse_effects() -> None:
    """Shows that the queue of effects is served: that it ran is noted."""


@task()
def drop_old_drafts() -> int:
    """Forget what nobody sent for a day."""
    return drafts.drop_old()


@task()
def enter_searched() -> int:
    """Make findable what was proposed since; how many versions."""
    return search_entries.add()


@task()
def prune() -> int:
    """What is needed no more: messages to people, sessions, results."""
    gone = retention.forget_notices()
    gone += sweeps.pieces(retention.forget_sessions, whole=retention.CHUNK)
    return gone + sweeps.pieces(retention.erase_results, whole=retention.CHUNK)

"""Celery's side of the gate. A task carries an id and calls operations; what is true
is in the database, so a lost, doubled or forged message changes nothing."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import timedelta

from celery import current_app, shared_task

from journal import epochs, faults, outbox, transactions
from journal.errors import Conflict, Decided, NotFound, Restored
from journal.models import OutboxMessage
from policies.choices import Role

from . import (
    alarms,
    audits,
    deadlines,
    drafts,
    executions,
    exports,
    forming,
    incidents,
    leases,
    proposals,
    reconciliation,
    repairs,
    restores,
    retention,
    revocations,
    stop_work,
    turns,
)
from .channels import delivery, notices
from .choices import Scope
from .models import Alarm, ApprovalRequest, Execution, Proposal, Stop

# A queued execution this old was not reached by its nudge.
QUIET = timedelta(seconds=3)
DECIDERS = (Role.REVIEWER, Role.SUPERVISOR)
BETWEEN_SWEEPS_S = 0.1
MOST_CHUNKS = 20  # so that a long backlog stays within one task's time limit


@shared_task(throws=(Restored,))
def execute(message_id: int) -> None:
    """The nudge of a queued execution."""
    with outbox.consume(message_id) as message:
        if message is not None:
            executions.run(message.subject)
            _hand_over(turns.after(message.subject))


@shared_task(throws=(Restored,))
def run_execution(execution_id: str) -> None:
    """The sweep's hand-over of an execution that nobody is on."""
    with suppress(NotFound):  # a forged message names what is not there
        executions.run(execution_id)
    _hand_over(turns.after(execution_id))


@shared_task
def watch_epoch() -> str:
    """See whether an older database was put in the place of ours."""
    return restores.watch()


@shared_task
def queue_executions() -> int:
    """Hand over what is due and queued; how many."""
    return _hand_over(deadlines.queued_executions(quiet=QUIET))


@shared_task
def recover_leases() -> int:
    """Hand over what a dead worker or agent left claimed; how many."""
    return _hand_over(deadlines.lapsed_executions())


@shared_task
def lapse_repairs() -> int:
    """End what nobody confirmed in time."""
    return repairs.lapse_repairs()


@shared_task
def look_up_unknown() -> int:
    """Hand over what nobody knows of and may be asked about now; how many."""
    due = reconciliation.due()
    for execution_id in due:
        current_app.send_task("reviews.tasks.look_up_one", args=[execution_id])
    return len(due)


@shared_task
def look_up_one(execution_id: str) -> None:
    """Ask the service of one what became of it. Never performs anything."""
    with suppress(NotFound):  # a forged message names what is not there
        reconciliation.look_up(execution_id)


def _hand_over(execution_ids: list[str]) -> int:
    if execution_ids and epochs.why():
        return 0  # each would only be refused
    for execution_id in execution_ids:
        current_app.send_task("reviews.tasks.run_execution", args=[execution_id])
    return len(execution_ids)


@shared_task
def form_batch(message_id: int) -> None:
    """A request came that may be decided with others like it."""
    with outbox.consume(message_id) as message:
        if message is not None:
            forming.form_around(message.subject)


@shared_task
def tidy_batches() -> int:
    """See who left a batch, and put together what was missed; how many changed."""
    return forming.tidy_all() + len(forming.form_all())


@shared_task
def close_recall_windows() -> int:
    """Authorise what nobody recalled in time."""
    with suppress(Restored):
        return _in_chunks(deadlines.close_recall_windows)
    return 0


@shared_task
def expire_due() -> int:
    """End what nobody answered in time."""
    return _in_chunks(deadlines.expire_chunk)


def _in_chunks(operation: deadlines.Sweep) -> int:
    """Repeat an operation until it finds less than a chunk."""
    total = 0
    for _ in range(MOST_CHUNKS):
        found = operation()
        total += len(found)
        if len(found) < deadlines.CHUNK:
            break
    return total


@shared_task
def hold_deadlines() -> int:
    """Keep ahead what an incident freezes, and let run again what it does not."""
    return _in_chunks(incidents.hold_deadlines)


@shared_task
def freeze_deadlines(message_id: int) -> None:
    """The nudge of a declared incident."""
    with outbox.consume(message_id) as message:
        if message is not None:
            _in_chunks(incidents.hold_deadlines)


@shared_task
def mail_incident(message_id: int) -> None:
    """To one supervisor: that deadlines stand still, or run again."""
    with outbox.consume(message_id) as message:
        if message is not None:
            notices.tell_incident(message.subject, **message.facts)


@shared_task
def remind_before_deadline() -> int:
    """Promise a reminder for what is near its deadline."""
    return deadlines.remind()


@shared_task
def lapse_leases() -> int:
    """Free what ran out while somebody waits for it."""
    return leases.lapse_chunk()


@shared_task
def drop_old_drafts() -> int:
    """Forget what nobody sent for a day."""
    return drafts.drop_old()


@shared_task
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
    for proposal_id in stop_work.under(stop):
        # Settled or claimed since it was listed: the others still wait.
        with suppress(Decided, Conflict):
            _take_back(proposal_id, stop)
    faults.point("stop_enforced", stop_id)
    return over


def _take_back(proposal_id: str, stop: Stop) -> None:
    """A reviewer's approval counts no more; of all else nothing is wanted any more."""
    if stop.scope == Scope.REVIEWER:
        revocations.revoke_approval(proposal_id=proposal_id, reviewer=stop.key)
    else:
        proposals.withdraw_stopped(proposal_id=proposal_id, code="stopped")


@shared_task
def mail_opened(message_id: int) -> None:
    _tell(message_id, "opened", DECIDERS)


@shared_task
def mail_escalated(message_id: int) -> None:
    _tell(message_id, "escalated", (Role.SUPERVISOR,))


@shared_task
def mail_returned(message_id: int) -> None:
    """A supervisor gave it back, with advice on how to answer it."""
    _tell(message_id, "returned", DECIDERS)


@shared_task
def mail_revoked(message_id: int) -> None:
    """An approval of it counts no more: others are asked."""
    _tell(message_id, "revoked", DECIDERS)


@shared_task
def mail_revoked_effect(message_id: int) -> None:
    """It was authorized, and does not run any more."""
    with outbox.consume(message_id) as message:
        if message is not None:
            execution = Execution.objects.get(pk=message.subject)
            notices.tell_of(execution, "cancelled")


@shared_task
def mail_assigned(message_id: int) -> None:
    """To the one whom a supervisor gave it to."""
    with outbox.consume(message_id) as message:
        if message is None:
            return
        request = _request(message.subject)
        if request.assignee is not None:
            _tell_one(message, "assigned", request.assignee.public_id)


@shared_task
def mail_freed(message_id: int) -> None:
    """Who asked hears that nobody is at it any more."""
    _tell_named(message_id, "freed")


@shared_task
def mail_offered(message_id: int) -> None:
    """Somebody is to take over what another holds."""
    _tell_named(message_id, "offered")


@shared_task
def mail_broken(message_id: int) -> None:
    """Whose hold a supervisor ended."""
    _tell_named(message_id, "broken")


@shared_task
def mail_handed_over(message_id: int) -> None:
    """Whose offer was taken."""
    _tell_named(message_id, "handed_over")


def _tell_named(message_id: int, kind: str) -> None:
    with outbox.consume(message_id) as message:
        if message is not None:
            _tell_one(message, kind, str(message.facts["person"]))


def _tell_one(message: OutboxMessage, kind: str, person: str) -> None:
    """To one person, once for each time that it happens."""
    request, occasion = _request(message.subject), str(message.pk)
    notices.tell(request, kind, roles=DECIDERS, only=person, occasion=occasion)


@shared_task
def mail_due_soon(message_id: int) -> None:
    _tell(message_id, "due_soon", DECIDERS)


@shared_task
def mail_settled(message_id: int) -> None:
    _tell(message_id, "settled", (Role.SUPERVISOR,))


def _tell(message_id: int, kind: str, roles: tuple[Role, ...]) -> None:
    """Each as they chose: at once, later, or not at all."""
    with outbox.consume(message_id) as message:
        if message is not None:
            notices.tell(_request(message.subject), kind, roles=roles)


@shared_task
def send_notice(message_id: int) -> None:
    """What was to wait, now that its time has come."""
    with outbox.consume(message_id) as message:
        if message is not None:
            delivery.one(message.subject)


@shared_task
def send_digest(message_id: int) -> None:
    """What was gathered for one person."""
    with outbox.consume(message_id) as message:
        if message is not None:
            delivery.digest(message.subject)


@shared_task
def send_test(message_id: int) -> None:
    with outbox.consume(message_id) as message:
        if message is not None:
            delivery.test(message.subject)


def _request(request_id: str) -> ApprovalRequest:
    return ApprovalRequest.objects.select_related("proposal", "queue").get(
        pk=request_id
    )


@shared_task
def mail_announced(message_id: int) -> None:
    """NOTIFY: it runs, and people hear of it at once."""
    with outbox.consume(message_id) as message:
        if message is not None:
            proposal = Proposal.objects.get(pk=message.subject)
            notices.tell_of(proposal.executions.get(), "ran")


@shared_task
def mail_unknown(message_id: int) -> None:
    with outbox.consume(message_id) as message:
        if message is not None:
            execution = Execution.objects.get(pk=message.subject)
            notices.tell_of(execution, "unknown")


@shared_task
def watch() -> int:
    """Raise what went against a promise and was not noticed; how many changed."""
    return alarms.watch()


@shared_task
def audit_refused() -> int:
    """Ask after effects that were refused; how many were found all the same."""
    return audits.audit_due()


@shared_task
def mail_alarm(message_id: int) -> None:
    """Something went against a promise: its supervisors hear of it once."""
    with outbox.consume(message_id) as message:
        if message is not None:
            notices.tell_alarm(Alarm.objects.get(pk=message.subject))


@shared_task
def write_export(message_id: int) -> None:
    """One delivery writes for a few seconds; the rest is another promise."""
    with outbox.consume(message_id) as message:
        if message is not None and not exports.write(message.subject):
            exports.go_on(message.subject)


@shared_task
def drop_old_exports() -> int:
    return exports.drop_old()


@shared_task
def prune() -> int:
    """A piece of what is needed no more: letters, sessions, results."""
    sent, sessions = retention.forget_notices(), retention.forget_sessions()
    return sent + sessions + retention.erase_results()

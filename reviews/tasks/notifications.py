"""Letters to people, of what happened to one request or effect.

What was put by for later leaves the house.
"""

from __future__ import annotations

from journal import outbox
from journal.models import OutboxMessage
from policies.choices import Role
from reviews.models import Alarm, ApprovalRequest, Execution, Proposal
from reviews.notifications import delivery, plan

from .named import task

DECIDERS = (Role.REVIEWER, Role.SUPERVISOR)


@task()
def mail_opened(message_id: int) -> None:
    _tell(message_id, "opened", DECIDERS)


@task()
def mail_escalated(message_id: int) -> None:
    _tell(message_id, "escalated", (Role.SUPERVISOR,))


@task()
def mail_returned(message_id: int) -> None:
    """A supervisor gave it back, with advice on how to answer it."""
    _tell(message_id, "returned", DECIDERS)


@task()
def mail_revoked(message_id: int) -> None:
    """An approval of it counts no more: others are asked."""
    _tell(message_id, "revoked", DECIDERS)


@task()
def mail_due_soon(message_id: int) -> None:
    _tell(message_id, "due_soon", DECIDERS)


@task()
def mail_settled(message_id: int) -> None:
    _tell(message_id, "settled", (Role.SUPERVISOR,))


def _tell(message_id: int, kind: str, roles: tuple[Role, ...]) -> None:
    """Each as they chose: at once, later, or not at all."""
    with outbox.consume(message_id) as message:
        if message is not None:
            plan.tell(_request(message.subject), kind, roles=roles)


@task()
def mail_assigned(message_id: int) -> None:
    """To the one whom a supervisor gave it to."""
    with outbox.consume(message_id) as message:
        if message is None:
            return
        request = _request(message.subject)
        if request.assignee is not None:
            _tell_one(message, "assigned", request.assignee.public_id)


@task()
def mail_freed(message_id: int) -> None:
    """Who asked hears that nobody is at it any more."""
    _tell_named(message_id, "freed")


@task()
def mail_offered(message_id: int) -> None:
    """Somebody is to take over what another holds."""
    _tell_named(message_id, "offered")


@task()
def mail_broken(message_id: int) -> None:
    """Whose hold a supervisor ended."""
    _tell_named(message_id, "broken")


@task()
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
    plan.tell(request, kind, roles=DECIDERS, only=person, occasion=occasion)


def _request(request_id: str) -> ApprovalRequest:
    return ApprovalRequest.objects.select_related("proposal", "queue").get(
        pk=request_id
    )


@task()
def mail_revoked_effect(message_id: int) -> None:
    """It was authorized, and does not run any more."""
    with outbox.consume(message_id) as message:
        if message is not None:
            execution = Execution.objects.get(pk=message.subject)
            plan.tell_of(execution, "cancelled")


@task()
def mail_announced(message_id: int) -> None:
    """NOTIFY: it runs, and people hear of it at once."""
    with outbox.consume(message_id) as message:
        if message is not None:
            proposal = Proposal.objects.get(pk=message.subject)
            plan.tell_of(proposal.executions.get(), "ran")


@task()
def mail_unknown(message_id: int) -> None:
    with outbox.consume(message_id) as message:
        if message is not None:
            execution = Execution.objects.get(pk=message.subject)
            plan.tell_of(execution, "unknown")


@task()
def mail_incident(message_id: int) -> None:
    """To one supervisor: that deadlines stand still, or run again."""
    with outbox.consume(message_id) as message:
        if message is not None:
            plan.tell_incident(message.subject, **message.facts)


@task()
def mail_alarm(message_id: int) -> None:
    """Something went against a promise: its supervisors hear of it once."""
    with outbox.consume(message_id) as message:
        if message is not None:
            plan.tell_alarm(Alarm.objects.get(pk=message.subject))


@task()
def send_notice(message_id: int) -> None:
    """What was to wait, now that its time has come."""
    with outbox.consume(message_id) as message:
        if message is not None:
            delivery.one(message.subject)


@task()
def send_digest(message_id: int) -> None:
    """What was gathered for one person."""
    with outbox.consume(message_id) as message:
        if message is not None:
            delivery.send(message.subject)


@task()
def send_test(message_id: int) -> None:
    with outbox.consume(message_id) as message:
        if message is not None:
            delivery.test(message.subject)

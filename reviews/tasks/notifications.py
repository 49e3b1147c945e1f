"""Tasks that notify people of what happened to a request, an effect or an alarm, and
that send delayed notices and digest mails."""

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
    _mail_deciders(message_id, "opened", DECIDERS)


@task()
def mail_escalated(message_id: int) -> None:
    _mail_deciders(message_id, "escalated", (Role.SUPERVISOR,))


@task()
def mail_returned(message_id: int) -> None:
    """A supervisor returned the request with guidance."""
    _mail_deciders(message_id, "returned", DECIDERS)


@task()
def mail_revoked(message_id: int) -> None:
    """An approval of the request was revoked, so others are asked."""
    _mail_deciders(message_id, "revoked", DECIDERS)


@task()
def mail_due_soon(message_id: int) -> None:
    _mail_deciders(message_id, "due_soon", DECIDERS)


@task()
def mail_settled(message_id: int) -> None:
    _mail_deciders(message_id, "settled", (Role.SUPERVISOR,))


def _mail_deciders(message_id: int, kind: str, roles: tuple[Role, ...]) -> None:
    """Notify the deciders of these roles, each by their preferences."""
    with outbox.consume(message_id) as message:
        if message is not None:
            plan.notify_deciders(_load_request(message.subject), kind, roles=roles)


@task()
def mail_assigned(message_id: int) -> None:
    """Notify the person to whom a supervisor assigned the request."""
    with outbox.consume(message_id) as message:
        if message is None:
            return
        request = _load_request(message.subject)
        if request.assignee is not None:
            _mail_person(message, "assigned", request.assignee.public_id)


@task()
def mail_freed(message_id: int) -> None:
    """Notify the person who asked for it that nobody holds the request any more."""
    _mail_named_person(message_id, "freed")


@task()
def mail_offered(message_id: int) -> None:
    """Notify the person to whom a holder offers the request."""
    _mail_named_person(message_id, "offered")


@task()
def mail_broken(message_id: int) -> None:
    """Notify the person whose hold a supervisor ended."""
    _mail_named_person(message_id, "broken")


@task()
def mail_handed_over(message_id: int) -> None:
    """Notify the person whose offer was accepted."""
    _mail_named_person(message_id, "handed_over")


def _mail_named_person(message_id: int, kind: str) -> None:
    with outbox.consume(message_id) as message:
        if message is not None:
            _mail_person(message, kind, str(message.facts["person"]))


def _mail_person(message: OutboxMessage, kind: str, person: str) -> None:
    """Notify one person, once for each outbox message."""
    request, occasion = _load_request(message.subject), str(message.pk)
    plan.notify_deciders(request, kind, roles=DECIDERS, only=person, occasion=occasion)


def _load_request(request_id: str) -> ApprovalRequest:
    return ApprovalRequest.objects.select_related("proposal", "queue").get(
        pk=request_id
    )


@task()
def mail_revoked_effect(message_id: int) -> None:
    """An authorized effect no longer runs, because its approval was revoked."""
    with outbox.consume(message_id) as message:
        if message is not None:
            execution = Execution.objects.get(pk=message.subject)
            plan.notify_of_execution(execution, "cancelled")


@task()
def mail_announced(message_id: int) -> None:
    """An effect of tier NOTIFY runs; supervisors are notified at once."""
    with outbox.consume(message_id) as message:
        if message is not None:
            proposal = Proposal.objects.get(pk=message.subject)
            plan.notify_of_execution(proposal.executions.get(), "ran")


@task()
def mail_unknown(message_id: int) -> None:
    with outbox.consume(message_id) as message:
        if message is not None:
            execution = Execution.objects.get(pk=message.subject)
            plan.notify_of_execution(execution, "unknown")


@task()
def mail_incident(message_id: int) -> None:
    """Notify one supervisor that deadlines are frozen, or run again."""
    with outbox.consume(message_id) as message:
        if message is not None:
            plan.notify_of_incident(message.subject, **message.facts)


@task()
def mail_alarm(message_id: int) -> None:
    """Notify the supervisors concerned of an alarm, once."""
    with outbox.consume(message_id) as message:
        if message is not None:
            plan.notify_of_alarm(Alarm.objects.get(pk=message.subject))


@task()
def send_notice(message_id: int) -> None:
    """Send a delayed notice that is now due."""
    with outbox.consume(message_id) as message:
        if message is not None:
            delivery.deliver_due_notice(message.subject)


@task()
def send_digest(message_id: int) -> None:
    """Send one person's digest mail."""
    with outbox.consume(message_id) as message:
        if message is not None:
            delivery.send_digest(message.subject)


@task()
def send_test(message_id: int) -> None:
    with outbox.consume(message_id) as message:
        if message is not None:
            delivery.send_test_notice(message.subject)

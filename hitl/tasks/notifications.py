"""Tasks that notify people, and that send delayed notices and digests."""

from __future__ import annotations

from journal import outbox
from notifications import delivery, plan

from .named import task


@task()
def notify_people(message_id: int) -> None:
    """Notify people of any event in `notifications.events.EVENTS`, on every
    channel."""
    with outbox.consume(message_id) as message:
        if message is not None:
            plan.notify_of_event(message)


@task()
def send_notice(message_id: int) -> None:
    """Send a delayed notice, or one that a channel refused, now that it is due."""
    with outbox.consume(message_id) as message:
        if message is not None:
            delivery.deliver_due_notice(message.subject)


@task()
def send_digest(message_id: int) -> None:
    """Send one person's digests."""
    with outbox.consume(message_id) as message:
        if message is not None:
            delivery.send_digest(message.subject)


@task()
def send_test(message_id: int) -> None:
    with outbox.consume(message_id) as message:
        if message is not None:
            delivery.send_test_notice(message.subject, **message.facts)

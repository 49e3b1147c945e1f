"""What was put by for later leaves the house."""

from __future__ import annotations

from journal import outbox
from reviews.channels import delivery
from reviews.notifications import delivery as digests

from .named import task


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
            digests.send(message.subject)


@task()
def send_test(message_id: int) -> None:
    with outbox.consume(message_id) as message:
        if message is not None:
            delivery.test(message.subject)

"""The outbox, emptied by hand, and the letters that came of it."""

from __future__ import annotations

from django.core import mail

from journal.models import OutboxMessage
from reviews import tasks


def drain(topic: str) -> None:
    """Hand every open message of a topic to its own task."""
    for message in OutboxMessage.objects.filter(topic=topic, done_at=None):
        getattr(tasks, message.task.rpartition(".")[2])(message.pk)


def told() -> list[tuple[str, str]]:
    """To whom mails went, and their first words."""
    return [
        (m.to[0].partition("@")[0], m.subject.partition(":")[0]) for m in mail.outbox
    ]

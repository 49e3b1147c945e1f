"""The outbox, emptied by hand, and the letters that came of it."""

from __future__ import annotations

from datetime import timedelta

from django.core import mail

from hitl import tasks
from journal import clock
from journal.models import OutboxMessage
from reviews.models import Notice


def drain(topic: str) -> None:
    """Hand every open message of a topic to its own task."""
    for message in OutboxMessage.objects.filter(topic=topic, done_at=None):
        getattr(tasks, message.task.rpartition(".")[2])(message.pk)


def drain_digests() -> None:
    """Send the digests for which people wait, as if their time had come."""
    past = clock.now() - timedelta(seconds=1)
    waiting = OutboxMessage.objects.filter(topic="notice.digest", done_at=None)
    waiting.update(due_at=past, held_until=past)
    Notice.objects.filter(sent_at=None, digest=True).update(due_at=past)
    drain("notice.digest")


def told() -> list[tuple[str, str]]:
    """To whom mails went, and their first words."""
    return [
        (m.to[0].partition("@")[0], m.subject.partition(":")[0]) for m in mail.outbox
    ]

"""Celery's side of the letters to agents. A task carries an id; what is true, and whose
turn it is, is in the database."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from celery import current_app, shared_task

from journal import outbox
from journal.errors import NotFound

from . import delivery, due, promises, resending, retention
from .models import Delivery

# A nudge that nobody took by then is not worth keeping: the sweep sends another.
KEPT_S = 10


@shared_task
def tell(message_id: int) -> None:
    """Something became of a proposal that somebody listens to."""
    with outbox.consume(message_id) as message:
        if message is not None:
            _hand_over(promises.promise(message=message))


@shared_task
def post(delivery_id: str) -> None:
    """One try of one letter, and a word to the next one."""
    with suppress(NotFound):  # a forged message names what is not there
        delivery.post(delivery_id)
    endpoint = Delivery.objects.filter(pk=delivery_id).values_list(
        "endpoint", flat=True
    )
    _hand_over(due.after(endpoint.first() or ""))


@shared_task
def post_due() -> int:
    """What is due and nobody is at; how many."""
    resending.give_up_overdue()
    return _hand_over(due.letters())


def _hand_over(delivery_ids: Iterable[str]) -> int:
    given = list(delivery_ids)
    for delivery_id in given:
        current_app.send_task("agents.tasks.post", args=[delivery_id], expires=KEPT_S)
    return len(given)


@shared_task
def prune() -> int:
    """A piece of what is needed no more: answers to old keys, old letters, blobs of old
    runs."""
    gone = retention.forget_keys() + retention.forget_letters()
    return gone + retention.erase_blobs()

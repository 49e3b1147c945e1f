"""Celery's side of the letters to agents. A task carries an id; what is true, and whose
turn it is, is in the database."""

from __future__ import annotations

from contextlib import suppress

from celery import shared_task

from journal import dispatch, outbox, sweeps
from journal.errors import NotFound

from . import retention
from .webhooks import delivery, enqueue, lanes, redelivery

POST = "agents.tasks.post"


@shared_task
def tell(message_id: int) -> None:
    """Something became of a proposal that somebody listens to."""
    with outbox.consume(message_id) as message:
        if message is not None:
            dispatch.hand_over(POST, lanes.firsts(enqueue.promise(message=message)))


@shared_task
def post(delivery_id: str) -> None:
    """One letter and those after it, and a word to whoever comes next."""
    with suppress(NotFound):  # a forged message names what is not there
        dispatch.hand_over(POST, delivery.carry(delivery_id))


@shared_task
def post_due() -> int:
    """What is due and nobody is at; how many."""
    redelivery.give_up_overdue()
    return dispatch.hand_over(POST, lanes.letters())


@shared_task
def prune() -> int:
    """What is needed no more: answers to old keys, old letters, blobs of old runs."""
    gone = retention.forget_keys()
    gone += sweeps.pieces(retention.forget_letters, whole=retention.CHUNK)
    gone += retention.forget_places()
    return gone + sweeps.pieces(retention.erase_blobs, whole=retention.CHUNK)

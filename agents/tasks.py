"""Celery tasks of the webhook deliveries and of retention. A task carries only an id;
the state, and whose turn it is, are in the database."""

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
    """Create the deliveries of one outbox message and start those whose turn it is."""
    with outbox.consume(message_id) as message:
        if message is not None:
            dispatch.hand_over(POST, lanes.firsts(enqueue.promise(message=message)))


@shared_task
def post(delivery_id: str) -> None:
    """Attempt one delivery and those after it in its lane, then start what is next."""
    with suppress(NotFound):  # deleted meanwhile, or a forged message
        dispatch.hand_over(POST, delivery.carry(delivery_id))


@shared_task
def post_due() -> int:
    """Start the deliveries that are due and not in flight; return how many."""
    redelivery.give_up_overdue()
    return dispatch.hand_over(POST, lanes.letters())


@shared_task
def prune() -> int:
    """Delete old idempotency keys, deliveries and endpoints, and erase the blobs of old
    runs; return how many."""
    gone = retention.forget_keys()
    gone += sweeps.pieces(retention.forget_letters, whole=retention.CHUNK)
    gone += retention.forget_places()
    return gone + sweeps.pieces(retention.erase_blobs, whole=retention.CHUNK)

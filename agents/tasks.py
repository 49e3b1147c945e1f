"""Celery tasks of the webhook deliveries and of retention. A task carries only an id;
the state, and whose turn it is, are in the database."""

from __future__ import annotations

from contextlib import suppress

from celery import shared_task

from journal import dispatch, outbox, sweeps
from journal.errors import NotFound

from . import retention
from .webhooks import delivery, enqueue, lanes, redelivery

POST_TASK = "agents.tasks.post"


@shared_task
def tell(message_id: int) -> None:
    """Create the deliveries of one outbox message and start those whose turn it is."""
    with outbox.consume(message_id) as message:
        if message is not None:
            dispatch.fill_queue(
                POST_TASK,
                lanes.list_first_in_lanes(enqueue.enqueue_deliveries(message=message)),
            )


@shared_task
def post(delivery_id: str) -> None:
    """Attempt one delivery and those after it in its lane, then start what is next."""
    with suppress(NotFound):  # deleted meanwhile, or a forged message
        dispatch.fill_queue(POST_TASK, delivery.deliver_lane(delivery_id))


@shared_task
def post_due() -> int:
    """Start the deliveries that are due and not in flight; return how many."""
    redelivery.give_up_overdue()
    return dispatch.fill_queue(POST_TASK, lanes.list_due_deliveries())


@shared_task
def prune() -> int:
    """Delete old idempotency keys, deliveries and endpoints, and erase the blobs of old
    runs; return how many."""
    gone = retention.delete_old_keys()
    gone += sweeps.delete_in_chunks(
        retention.delete_old_deliveries, whole=retention.CHUNK
    )
    gone += retention.delete_unused_endpoints()
    return gone + sweeps.delete_in_chunks(retention.erase_blobs, whole=retention.CHUNK)

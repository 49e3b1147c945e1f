"""Names of rows for a task to look at, sent while its queue has room.

A sweep names again what is still there, so nothing is lost by leaving some out; and a
queue that nobody has emptied for an hour holds no hour's worth of repetitions. Messages
have no time at which they expire: the sender's clock and the worker's may differ by
more than that (T8).
"""

from __future__ import annotations

from collections.abc import Iterable

from celery import current_app
from kombu.exceptions import ChannelError

# Messages in one queue. A worker's process is through with so many in seconds.
ROOM = 200


def hand_over(task: str, ids: Iterable[str]) -> int:
    """Send these ids, one message each, as far as there is room; how many were sent.
    Raises what the broker's client raises. Caller holds no transaction."""
    given = list(ids)
    if given:
        given = given[: room(task)]
    for pk in given:
        current_app.send_task(task, args=[pk])
    return len(given)


def room(task: str) -> int:
    """For how many more messages the queue of this task has room."""
    queue = current_app.amqp.router.route({}, task)["queue"].name
    with current_app.producer_or_acquire() as producer:
        try:
            waiting = int(producer.channel.queue_declare(queue, passive=True)[1])
        except ChannelError:  # nobody has sent anything to it yet
            waiting = 0
    return max(0, ROOM - waiting)

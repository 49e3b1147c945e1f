"""Names of rows for a task to look at: the one way to send a message.

A sweep sends them while their queue has room. It names again what is still there, so
nothing is lost by leaving some out; and a queue that nobody has emptied for an hour
holds no hour's worth of repetitions. Messages have no time at which they expire: the
sender's clock and the worker's may differ by more than that (T8).
"""

from __future__ import annotations

from collections.abc import Iterable

from celery import current_app
from kombu.exceptions import ChannelError

# Messages in one queue. A worker's process is through with so many in seconds.
ROOM = 200
# Where the broker counts the messages that workers could not read and dropped.
DROPPED = "holdpoint.dropped"


def hand_over(task: str, ids: Iterable[str]) -> int:
    """Send these ids, one message each, as far as there is room; how many were sent.
    Raises what the broker's client raises. Caller holds no transaction."""
    given = list(ids)
    if given:
        given = given[: room(task)]
    for pk in given:
        send(task, pk)
    return len(given)


def send(task: str, pk: str | int) -> None:
    """One message, tried once: what it names stays, and is sent again. Raises what the
    broker's client raises. Caller holds no transaction."""
    current_app.send_task(task, args=[pk], retry=False, ignore_result=True)


def by_queue(tasks: Iterable[str]) -> list[list[str]]:
    """These tasks, those of one queue together, the most urgent queue first."""
    found: dict[str, list[str]] = {name: [] for name in current_app.amqp.queues}
    for task in tasks:
        found.setdefault(_queue(task), []).append(task)
    return [together for together in found.values() if together]


def room(task: str) -> int:
    """For how many more messages the queue of this task has room. Raises what the
    broker's client raises."""
    queue = _queue(task)
    with current_app.producer_or_acquire() as producer:
        try:
            waiting = int(producer.channel.queue_declare(queue, passive=True)[1])
        except ChannelError:  # nobody has sent anything to it yet
            waiting = 0
    return max(0, ROOM - waiting)


def dropped() -> int:
    """How many messages workers dropped since `forget_dropped` was last called. Raises
    what the broker's client raises."""
    with current_app.producer_or_acquire() as producer:
        return int(producer.channel.client.get(DROPPED) or 0)


def forget_dropped(count: int) -> None:
    """So many of them are written down elsewhere. Raises what the broker's client
    raises."""
    with current_app.producer_or_acquire() as producer:
        producer.channel.client.decrby(DROPPED, count)


def _queue(task: str) -> str:
    name: str = current_app.amqp.router.route({}, task)["queue"].name
    return name

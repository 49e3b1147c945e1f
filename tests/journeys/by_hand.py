"""A worker and its sweeps in this process: what is left of somebody's death is taken up
by nothing but what the sweeps name and the queues hold."""

from __future__ import annotations

from celery import current_app
from django.db.models import Q

from hitl import tasks
from journal import sweeps
from journal.errors import DomainError
from journal.models import OutboxMessage
from reviews.choices import IN_FLIGHT, ExecutionStatus
from reviews.models import Execution

MOST_ROUNDS = 6
LONG_AGO = "2020-01-01T00:00Z"


def take_up() -> None:
    """Sweep and work until nothing is left. What rests, or is held by the dead, is due
    at once: no clock is waited for. Raises AssertionError when something stays."""
    for _ in range(MOST_ROUNDS):
        work()
        if not _left():
            return
        _come_due()
        for sweep in (
            sweeps.send_due_messages,
            tasks.queue_executions,
            tasks.recover_leases,
        ):
            sweep()
    raise AssertionError(f"nobody took up {_left()}")


def work() -> int:
    """Everything that the queues hold, as a worker does it; how many messages."""
    done = 0
    with current_app.connection_for_read() as connection:
        for queue in current_app.amqp.queues.values():
            bound = queue(connection.default_channel)
            while (message := bound.get(no_ack=True)) is not None:
                _do(message.headers["task"], message.decode()[0])
                done += 1
    return done


def _do(name: str, args: list[object]) -> None:
    """One task; a refusal ends it, as it does in a worker."""
    ended = current_app.tasks[name].apply(args=args)
    if ended.failed() and not isinstance(ended.result, DomainError):
        raise ended.result


def _left() -> list[str]:
    open_now = Execution.objects.filter(status__in=IN_FLIGHT, by_agent=False)
    promised = OutboxMessage.objects.filter(done_at=None)
    return [
        *open_now.values_list("pk", flat=True),
        *promised.values_list("topic", flat=True),
    ]


def _come_due() -> None:
    OutboxMessage.objects.filter(done_at=None).update(held_until=None, due_at=LONG_AGO)
    queued = Q(status=ExecutionStatus.QUEUED)
    Execution.objects.filter(queued).update(due_at=LONG_AGO)
    claimed = Execution.objects.filter(status=ExecutionStatus.CLAIMED, by_agent=False)
    claimed.update(lease_until=LONG_AGO)

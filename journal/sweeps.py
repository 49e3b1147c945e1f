"""The sweep of the outbox: what is due is sent once more.

It remembers piece by piece what it sent, so that one that is cut off costs a piece, and
sends no more than a queue has room for, so that a backlog of one kind of work neither
fills the broker nor hides the promises behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Greatest, Least, Now
from structlog.stdlib import get_logger

from . import dispatch, failpoints, outbox
from .models import OutboxMessage

PIECE = 50
LONGEST_WAIT = timedelta(seconds=60)

logger = get_logger(__name__)


def sweep() -> int:
    """Send what is due, oldest first, as far as each queue has room; how many the
    broker took. The first that it does not take ends the sweep."""
    tasks = {task for route in settings.OUTBOX_ROUTES.values() for task in route}
    sent = 0
    for together in dispatch.by_queue(sorted(tasks)):
        given, took_all = _fill(together)
        sent += given
        if not took_all:
            break
    return sent


def _fill(tasks: Sequence[str]) -> tuple[int, bool]:
    """Send what is due for the tasks of one queue; how many the broker took, and
    whether these were all it was given."""
    try:
        room = dispatch.room(tasks[0])
    except Exception as error:  # whatever a broker's client raises
        logger.warning("outbox.sweep_failed", error=type(error).__name__)
        return 0, False
    sent = 0
    while piece := _due(tasks, min(PIECE, room - sent)):
        taken = outbox.send(piece)
        _move(piece[:taken])
        sent += taken
        if taken < len(piece):
            return sent, False
    return sent, True


def _due(tasks: Sequence[str], most: int) -> list[OutboxMessage]:
    due = OutboxMessage.objects.filter(outbox.free(), task__in=tasks, due_at__lte=Now())
    # All that sending reads: a column left out here costs a query a message.
    return list(due.only("pk", "task", "subject").order_by("due_at")[:most])


def _move(sent: Sequence[OutboxMessage]) -> None:
    """They are due again after as long as they have waited, from 5 s to a minute."""
    if not sent:
        return
    failpoints.point("swept_unmoved")
    age = ExpressionWrapper(Now() - F("created_at"), output_field=DurationField())
    wait = Least(Greatest(age, outbox.span(outbox.HEAD_START)), LONGEST_WAIT)
    mine = OutboxMessage.objects.filter(outbox.free(), pk__in=[one.pk for one in sent])
    mine.update(due_at=Now() + wait)

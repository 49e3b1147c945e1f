"""Sending dead or held deliveries again, on a person's order; and ending those that
wait for a switched-off endpoint past their time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from agents import locks, transitions
from agents.choices import DeliveryStatus
from agents.models import Delivery
from journal import clock, sweeps
from journal.errors import Conflict
from journal.operations import operation
from policies.models import Person
from policies.people import build_actor

from . import delivery
from .enqueue import GIVE_UP_AFTER

MAX_AT_ONCE = 200  # deliveries that one click sends again
GIVE_UP_CHUNK = 500


@operation(
    locks="deliveries by id, alarms",
    writes="Delivery, Alarm",
    logs="delivery.dead; alarm.raised",
    after="mail, wake-up",
)
def give_up_overdue() -> int:
    """Mark as dead the deliveries that waited for a switched-off endpoint until their
    time was over; return how many."""
    # No attempt would find that out, because the endpoint is switched off.
    waiting = Delivery.objects.filter(status=DeliveryStatus.WAITING)
    overdue = waiting.filter(
        endpoint__off_at__isnull=False, give_up_at__lte=clock.ClockTimestamp()
    )
    chosen = list(overdue.values_list("pk", flat=True)[:GIVE_UP_CHUNK])
    now = clock.now()
    rows = locks.lock_deliveries(waiting.filter(pk__in=chosen))

    def end(overdue: list[Delivery]) -> None:
        for row in overdue:
            delivery.mark_dead(row, {"last_error": "the endpoint was disabled"}, now)

    return len(sweeps.apply_to_all(end, rows))


@operation(
    locks="endpoint, delivery",
    writes="Delivery",
    logs="delivery.again",
    after="webhook, wake-up",
)
def send_again(*, delivery_id: str, by: Person) -> None:
    """Restart a dead or held delivery for another three days. Raises NotFound,
    IllegalTransition."""
    _restart_deliveries([locks.lock_delivery(delivery_id)], by, clock.now())


@operation(
    locks="deliveries by id",
    writes="Delivery",
    logs="delivery.again",
    after="webhook, wake-up",
)
def send_all_again(*, endpoint_id: str, by: Person) -> int:
    """Restart the dead deliveries of an endpoint, at most MAX_AT_ONCE, the oldest
    first; return how many. Raises Conflict when there is none."""
    dead = Delivery.objects.filter(
        endpoint=endpoint_id, status=DeliveryStatus.DEAD
    ).order_by("ended_at")
    chosen = list(dead.values_list("pk", flat=True)[:MAX_AT_ONCE])
    rows = locks.lock_deliveries(Delivery.objects.filter(pk__in=chosen))
    dead_rows = [row for row in rows if row.status == DeliveryStatus.DEAD]
    if not dead_rows:
        raise Conflict("This endpoint has no failed deliveries. Nothing was resent.")
    _restart_deliveries(dead_rows, by, clock.now())
    return len(dead_rows)


def _restart_deliveries(rows: Iterable[Delivery], by: Person, now: datetime) -> None:
    actor = build_actor(by)
    for row in rows:
        transitions.delivery.apply(
            row,
            "again",
            actor=actor,
            now=now,
            changes={
                "attempts": 0,
                "next_at": now,
                "give_up_at": now + GIVE_UP_AFTER,
                "ended_at": None,
                "last_error": "",
                "last_answer": None,
            },
        )

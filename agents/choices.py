"""The words of the agents' side."""

from __future__ import annotations

from enum import StrEnum


class ThreadStatus(StrEnum):
    """Waiting is derived; pause and stop are Stop rows of the gate."""

    RUNNING = "running"
    FINISHED = "finished"


class ThreadResult(StrEnum):
    """What the agent says of its own run at the end."""

    COMPLETED = "completed"
    GAVE_UP = "gave_up"
    FAILED = "failed"


class DeliveryStatus(StrEnum):
    """Where a letter to an agent's endpoint stands."""

    WAITING = "waiting"
    DELIVERED = "delivered"  # the endpoint answered 2xx
    TAKEN = "taken"  # the agent acknowledged the outcome in another way
    DEAD = "dead"  # three days of tries, or the endpoint said that it is gone
    HELD = "held"  # it does not fit the published form, so it was not sent


ENDED = tuple(s for s in DeliveryStatus if s is not DeliveryStatus.WAITING)


class TakenBy(StrEnum):
    """How an agent said that it has an outcome."""

    CALL = "call"
    WEBHOOK = "webhook"

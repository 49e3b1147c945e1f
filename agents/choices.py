"""Enumerations of the agents' models."""

from __future__ import annotations

from enum import StrEnum


class ThreadStatus(StrEnum):
    """The stored states of a thread. That it waits is derived from its requests; pauses
    and stops are Stop rows of the gate."""

    RUNNING = "running"
    FINISHED = "finished"


class ThreadResult(StrEnum):
    """How a run ended, as its agent reports it."""

    COMPLETED = "completed"
    GAVE_UP = "gave_up"
    FAILED = "failed"


class DeliveryStatus(StrEnum):
    """The states of a webhook delivery."""

    WAITING = "waiting"
    DELIVERED = "delivered"  # the endpoint answered 2xx
    TAKEN = "taken"  # the agent acknowledged the outcome in another way
    DEAD = "dead"  # given up after three days of attempts, or after a 410
    HELD = "held"  # the payload violates the published schema, so it was not sent


ENDED_STATUSES = tuple(s for s in DeliveryStatus if s is not DeliveryStatus.WAITING)


class TakenBy(StrEnum):
    """How an agent acknowledged an outcome."""

    CALL = "call"
    WEBHOOK = "webhook"


# The source of a proposal that an AuthZEN access request made. Reserved: an agent may
# not use it, so what such a proposal says of its subject comes from the adapter.
AUTHZEN_SOURCE = "authzen"


class SettingsStatus(StrEnum):
    """The states of a change that loosens an agent's settings."""

    PROPOSED = "proposed"
    CONFIRMED = "confirmed"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"  # by the administrator who asked for it
    LAPSED = "lapsed"  # nobody answered in time
    VOID = "void"  # the agent has other settings by now

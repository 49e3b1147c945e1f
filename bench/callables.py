"""What the product's processes run for a measurement: the tools and a no-op task.

The policy names `read` and `refund`, which answer at once and keep nothing, so that
what is timed is the gate. This module is small because the processes import it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from typing import Any

import redis
from celery import shared_task
from django.conf import settings

from reviews.tool_services.executors import Call

HOP = "bench:hop"  # the broker's list of when no-ops began


@cache
def connect_broker() -> redis.Redis:
    """This process's connection to the broker."""
    return redis.Redis.from_url(settings.COUNTERSEAL.redis_url)


def empty_broker() -> None:
    """Drop the nudges that no worker takes here."""
    connect_broker().flushdb()


@shared_task
def hop() -> None:
    """Say when it began: monotonic time is the machine's, not the process's."""
    connect_broker().lpush(HOP, repr(time.monotonic()))


def read(args: Mapping[str, Any]) -> dict[str, Any]:
    """Answer as a store would about an order: facts, keys and a version."""
    return {
        "before": {"amount": "0.00"},
        "keys": {"customer": f"C-{args['order_id']}", "order": args["order_id"]},
        "facts": {"total": "99.00", "total_currency": "USD", "shipped": True},
        "preconditions": {"order_version": 7},
        "source": "bench",
        "labels": {"amount": "Amount"},
    }


def refund(call: Call) -> dict[str, Any]:
    """Perform an effect that costs nothing."""
    return {"refund": call.idempotency_key}

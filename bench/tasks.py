"""A no-op for the worker, and the broker that it reports to."""

from __future__ import annotations

import time
from functools import cache

import redis
from celery import shared_task
from django.conf import settings

HOP = "bench:hop"  # the broker's list of when no-ops began


@cache
def connect_broker() -> redis.Redis:
    """This process's connection to the broker."""
    return redis.Redis.from_url(settings.HOLDPOINT.redis_url)


@shared_task
def hop() -> None:
    """Says when it began: monotonic time is the machine's, not the process's."""
    connect_broker().lpush(HOP, repr(time.monotonic()))

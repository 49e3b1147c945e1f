"""The real broker, empty before and after."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from django.conf import settings


@pytest.fixture
def broker() -> Iterator[redis.Redis]:
    with redis.Redis.from_url(settings.HOLDPOINT.redis_url) as client:
        client.flushdb()
        yield client
        client.flushdb()

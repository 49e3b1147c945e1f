"""Fixtures of the outward calls: which networks may be reached, and a real service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import ip_network
from typing import Any

import pytest

from tests.reviews import service as services


@pytest.fixture
def networks(settings: Any) -> Callable[..., None]:
    """`networks("127.0.0.1/32")`: the private networks webhooks may reach; none yet."""

    def allow(*texts: str) -> None:
        found = [ip_network(text) for text in texts]
        changed = settings.HOLDPOINT.model_copy(update={"webhook_networks": found})
        settings.HOLDPOINT = changed

    allow()
    return allow


@pytest.fixture
def service(networks: Callable[..., None]) -> Iterator[services.Service]:
    """A service that webhooks may reach."""
    networks("127.0.0.1/32")
    with services.running() as running:
        yield running

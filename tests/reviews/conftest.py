"""Fixtures of the outward calls: which networks may be reached, and a real service."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.reviews import service as services


@pytest.fixture
def service(networks: Callable[..., None]) -> Iterator[services.Service]:
    """A service that webhooks may reach."""
    networks("127.0.0.1/32")
    with services.running() as running:
        yield running

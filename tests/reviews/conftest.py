"""Fixtures of the outward calls, and a host that keeps a note of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from journal import high_water_mark, restore_epochs
from tests.reviews import service as services


@pytest.fixture
def service(networks: Callable[..., None]) -> Iterator[services.Service]:
    """A service that webhooks may reach."""
    networks("127.0.0.1/32")
    with services.running() as running:
        yield running


@pytest.fixture
def own_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A host of its own, and no broker: that would remember between tests."""
    monkeypatch.setattr(high_water_mark, "build_mark_path", lambda: tmp_path / "epoch")
    monkeypatch.setattr(high_water_mark, "_exchange_with_broker", lambda mine: None)
    yield
    restore_epochs.last_status = restore_epochs.EpochStatus()

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.client.typescript.node import Probe


@pytest.fixture(scope="session")
def _probe() -> Iterator[list[Probe]]:
    running: list[Probe] = []
    yield running
    for probe in running:
        probe.close()


@pytest.fixture
def probe(_probe: list[Probe]) -> Probe:
    """One process for all tests; a new one where a test has ended it."""
    if not _probe or _probe[-1].process.poll() is not None:
        _probe.append(Probe())
    return _probe[-1]

from __future__ import annotations

import pytest

from tests.conftest import Gate
from tests.security import world as worlds
from tests.security.world import World


@pytest.fixture
def world(gate: Gate) -> World:
    """One of everything, and a client for everyone."""
    return worlds.build(gate)

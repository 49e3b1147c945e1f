"""One request to be held."""

from __future__ import annotations

import pytest

from reviews.models import ApprovalRequest
from tests.conftest import Gate
from tests.factories import propose


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent).request

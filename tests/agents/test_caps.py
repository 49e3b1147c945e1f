"""What one agent may have at once; what others have is no concern of it."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from journal.errors import AgentRateLimited
from reviews.choices import RequestStatus
from tests import factories
from tests.conftest import Gate
from tests.reviews import states


@pytest.fixture
def one_waits(settings: Settings) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"agent_pending_cap": 1}
    )


@pytest.mark.usefixtures("one_waits")
def test_what_is_settled_waits_no_more(gate: Gate) -> None:
    other = factories.agent(gate.owen, "other")
    factories.propose(other, thread="o-1")
    waiting = factories.propose(gate.agent)
    with pytest.raises(AgentRateLimited):
        factories.propose(gate.agent)
    factories.decide(waiting.request, gate.rita, "reject")
    factories.propose(gate.agent)


@pytest.mark.usefixtures("one_waits")
def test_an_approval_that_can_be_recalled_still_waits(gate: Gate) -> None:
    request = states.recallable(gate)
    request.refresh_from_db()
    assert request.status == RequestStatus.RECALLABLE
    with pytest.raises(AgentRateLimited):
        factories.propose(gate.agent)

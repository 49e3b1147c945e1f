from __future__ import annotations

from hitl import tasks
from tests import worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.hitl.tasks.draining import drain


def test_the_nudge_runs_the_execution_once(gate: Gate) -> None:
    decide(propose(gate.agent).request, gate.rita)
    drain("execution.queued")
    drain("execution.queued")
    assert len(worlds.effects()) == 1


def test_a_forged_id_has_no_effect(gate: Gate) -> None:
    """I25: a message of the broker can only name a row."""
    propose(gate.agent)
    tasks.execute(999_999)
    tasks.run_execution("x-forged")
    assert worlds.effects() == []

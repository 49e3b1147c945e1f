"""An agent that is killed at any point between hearing of an outcome and acknowledging
it acts on it exactly once, if it keeps the outcome's name with its own work."""

from __future__ import annotations

import itertools
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from agents import keys
from agents.models import Acknowledgement
from reviews.executions import claims, record, settle
from reviews.executions import run as executions
from reviews.models import Execution
from reviews.tool_services.executors import EffectOutcome
from tests import factories
from tests.agents import dying_agent
from tests.agents.dying_agent import POINTS
from tests.conftest import ROOT, Gate
from tests.stack import Stack

pytestmark = [pytest.mark.servers, pytest.mark.proof]
CLEAN = ""
CHECKPOINT = {"summary": "waits", "resume_at": "go on"}


def ask(gate: Gate, thread: str, tool: str = "pay") -> Execution | None:
    """A run whose question was answered: with yes, and it is done, or with no."""
    proposal = factories.propose(
        gate.agent, tool, thread=thread, customer=thread, checkpoint=CHECKPOINT
    )
    verdict = "reject" if thread.endswith("no") else "approve"
    factories.decide(proposal.request, gate.rita, verdict)
    return proposal.executions.first()


def run(live: Stack, point: str, key: str, thread: str, file: Path) -> int:
    """One life of the agent; how it ended."""
    command = [sys.executable, dying_agent.__file__, point, live.base_url, key, thread]
    env = {**live.environ, "PYTHONPATH": str(ROOT / "client")}
    ended = subprocess.run(
        [*command, str(file)], env=env, capture_output=True, timeout=60
    )
    assert ended.returncode in {0, -signal.SIGKILL}, ended.stderr.decode()
    return ended.returncode


def work(file: Path) -> list[tuple[str, str]]:
    with sqlite3.connect(file) as db:
        return list(db.execute("SELECT thread, status FROM work"))


def resume(live: Stack, key: str, thread: str) -> httpx2.Response:
    path = f"{live.base_url}/api/v1/threads/{thread}/checkpoint"
    bearer = {"Authorization": f"Bearer {key}"}
    return httpx2.get(path, headers=bearer, trust_env=False)


def test_each_outcome_is_acted_on_once(
    live: Stack,
    gate: Gate,
    tmp_path: Path,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    key, file = (
        keys.issue_key(agent=gate.agent, by=gate.owen),
        tmp_path / "agent.sqlite",
    )
    n = proof_n(small=len(POINTS), full=120)
    points, killed = itertools.cycle(POINTS), 0
    for number in range(n):
        thread = f"t-{number}-{'no' if number % 2 else 'yes'}"
        execution = ask(gate, thread)
        if execution is not None:
            executions.run_execution(execution.pk)
        killed += run(live, next(points), key, thread, file) == -signal.SIGKILL
        assert run(live, CLEAN, key, thread, file) == 0
        found = resume(live, key, thread).json()
        assert found["acknowledged"]
        assert found["outcome"]["outcome"] == Acknowledgement.objects.latest("at").pk
    assert run(live, CLEAN, key, thread, file) == 0  # and again it does nothing
    assert killed == n
    expected = [
        (f"t-{one}-{'no' if one % 2 else 'yes'}", "rejected" if one % 2 else "executed")
        for one in range(n)
    ]
    assert work(file) == expected
    record_proof(
        "T4",
        f"an agent killed at {len(POINTS)} points between hearing and acknowledging: "
        f"{n} of {n} outcomes acted on exactly once (bound {3 / n:.3f})",
    )


def test_what_a_person_says_later_is_another_outcome(
    live: Stack, gate: Gate, tmp_path: Path
) -> None:
    key, file = (
        keys.issue_key(agent=gate.agent, by=gate.owen),
        tmp_path / "agent.sqlite",
    )
    execution = ask(gate, "t-odd", "pay_opaque")
    assert execution is not None
    claim = claims.claim_execution(
        execution_id=execution.pk, actor=claims.EXECUTOR_ACTOR
    )
    assert claim is not None
    lost = EffectOutcome("unknown", code="lost")
    record.record_outcome(
        execution_id=execution.pk,
        fence=claim.fence,
        outcome=lost,
        actor=claims.EXECUTOR_ACTOR,
    )
    for point in ("committed", CLEAN):
        run(live, point, key, "t-odd", file)
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sue, happened=True, reason="seen"
    )
    assert not resume(live, key, "t-odd").json()["acknowledged"]
    for point in ("acknowledging", CLEAN):
        run(live, point, key, "t-odd", file)
    assert work(file) == [("t-odd", "unknown"), ("t-odd", "executed")]

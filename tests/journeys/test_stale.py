"""Who slept past its lease and wakes up: another has taken over, and whatever the
sleeper still wants to write is refused, every time (T7, I22)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from journal import log
from journal.errors import StaleFence
from journal.failpoints import FaultAction
from journal.models import LogRecord
from reviews import transitions
from reviews.choices import ExecutionStatus
from reviews.executions import record, redeem
from reviews.executions import run as executions
from reviews.grants import tokens
from reviews.models import Execution
from reviews.tool_services.executors import EffectOutcome
from tests import factories, worlds
from tests.conftest import Gate
from tests.journeys import dying

pytestmark = [
    pytest.mark.proof,
    pytest.mark.django_db(transaction=True),
]

# Where it falls asleep -> whether the effect had happened by then.
POINTS = {
    "after_claim": 0,
    "rechecked": 0,
    "before_effect": 0,
    "after_effect": 1,
    "before_record": 1,
}
TOOLS = ["pay", "pay_queryable", "pay_opaque"]
# Between the last look at the lease and the first byte nobody can hold it back. A keyed
# service does a key once and an opaque one was not asked again; a queryable one must
# look at the fence that it is sent.
ITS_OWN = ("before_effect", "pay_queryable")

STEPS = {edge.logged_as for edge in transitions.execution.edges}


def pairs() -> list[tuple[str, str]]:
    every = [(point, tool) for point in POINTS for tool in TOOLS]
    return [pair for pair in every if pair != ITS_OWN]


def test_what_a_sleeper_still_writes_is_refused(
    gate: Gate,
    tmp_path: Path,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    times = proof_n(small=1, full=80)
    for n in range(times):
        for point, tool in pairs():
            check(gate, tmp_path / f"{point}-{tool}-{n}", point, tool)
    count = times * len(pairs())
    record_proof(
        "T7",
        f"{count} processes stopped at {len(POINTS)} points, their leases over, another"
        f" done, then continued: {count} late writes, {count} refused (0 accepted: at"
        f" most {300 / count:.2f} %); past its last look at the lease it is for a"
        " queryable effect's service to refuse",
    )


def check(gate: Gate, folder: Path, point: str, tool: str) -> None:
    folder.mkdir()
    request = factories.propose(
        gate.agent, tool, customer=folder.name, thread=folder.name
    ).request
    factories.decide(request, gate.rita)
    execution = Execution.objects.get(proposal=request.proposal_id)
    sleeper = dying.start(
        lambda: run(execution.pk), folder, f"{point}@{execution.pk}", FaultAction.STOP,
        StaleFence,
    )  # fmt: skip
    assert sleeper.frozen(), (point, tool)
    factories.lapsed(execution)
    executions.run_execution(execution.pk)
    before = state(execution)
    assert before[0] == ended(tool), (point, tool)
    assert sleeper.go_on() == dying.REFUSED, (point, tool)
    assert state(execution) == before, (point, tool)
    late = point == "before_effect"  # it was asked for, and has no place to be written
    assert effects(execution) == expected(point, tool, late), (point, tool)


def run(execution_id: str) -> None:
    """Raises StaleFence where the product only says so in its log."""
    with capture_logs() as said:
        executions.run_execution(execution_id)
    if any(line["event"] == "stale_fence" for line in said):
        raise StaleFence


def ended(tool: str) -> str:
    opaque = tool == "pay_opaque"
    return ExecutionStatus.UNKNOWN if opaque else ExecutionStatus.SUCCEEDED


def expected(point: str, tool: str, late: bool) -> int:
    """A successor does what had not happened, but for what nobody can look up."""
    return 1 if tool != "pay_opaque" or late else POINTS[point]


def state(execution: Execution) -> tuple[str, int, int]:
    """What the sleeper could change; that it came late is another record, an alarm."""
    execution.refresh_from_db()
    written = LogRecord.objects.filter(proposal=execution.proposal_id)
    records = written.filter(kind__in=STEPS).count()
    return execution.status, execution.fence, records


def effects(execution: Execution) -> int:
    return sum(key == execution.idempotency_key for _, key, _ in worlds.effects())


def test_an_agent_that_slept_reports_under_an_old_fence(
    gate: Gate, record_proof: Callable[[str, str], None]
) -> None:
    request = factories.propose(gate.agent, "deploy").request
    factories.decide(request, gate.sue)
    factories.decide(request, gate.sam)
    execution = Execution.objects.get(proposal=request.proposal_id)
    token = tokens.load_token(execution.grant_id)
    first = redeem.redeem_grant(token=token, agent="riley")
    factories.lapsed(execution)
    second = redeem.redeem_grant(token=token, agent="riley")
    report = EffectOutcome("succeeded", {"ref": "v1"})
    actor = log.Actor("agent", "riley")
    with pytest.raises(StaleFence):
        record.record_outcome(
            execution_id=execution.pk, fence=first.fence, outcome=report, actor=actor
        )
    record.record_outcome(
        execution_id=execution.pk, fence=second.fence, outcome=report, actor=actor
    )
    execution.refresh_from_db()
    assert (execution.status, execution.fence) == (ExecutionStatus.SUCCEEDED, 2)
    record_proof("T7", "an agent that redeemed before its lease ended: refused")

"""T8: the clocks of the web and the workers are ten minutes wrong, either way;
deadlines, leases and windows are the database's all the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import httpx2
import pytest
from django.db import connection, transaction

from journal import clock, log
from journal.errors import RequestExpired
from reviews.choices import ExecutionStatus, RequestStatus
from reviews.executions import claims
from reviews.models import ApprovalRequest, Decision, Execution, Grant
from reviews.people import tokens
from tests import worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.guards import ROOT
from tests.races.together import Together
from tests.stack import Stack, make, wait_until

pytestmark = [
    pytest.mark.servers,
    pytest.mark.proof,
    pytest.mark.django_db(transaction=True),
]
SKEW_S, STEP_S = 600, 3600
SOON, PAST = timedelta(seconds=SKEW_S // 2), timedelta(seconds=-1)


@dataclass
class Skewed:
    """Those who decide at a web whose clock is wrong."""

    gate: Gate
    stack: Stack
    reviewer: httpx2.Client

    def ask(self, name: str, left: timedelta) -> ApprovalRequest:
        request: ApprovalRequest = propose(
            self.gate.agent, customer=name, thread=name
        ).request
        due = clock.now() + left
        ApprovalRequest.objects.filter(pk=request.pk).update(expires_at=due)
        return request

    def approve(self, request: ApprovalRequest) -> httpx2.Response:
        said = {"version": request.version, "action_hash": request.action_hash}
        path = f"/api/v1/requests/{request.pk}/decide"
        return self.reviewer.post(path, json={**said, "verdict": "approve"})

    def granted(self, name: str) -> Execution:
        request = propose(self.gate.agent, customer=name, thread=name).request
        decide(request, self.gate.rita)
        return Execution.objects.get(proposal=request.proposal_id)

    def claimed(self, name: str, left: timedelta) -> Execution:
        execution = self.granted(name)
        claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
        until = clock.now() + left
        Execution.objects.filter(pk=execution.pk).update(lease_until=until)
        execution.refresh_from_db()
        return execution

    def closed(self, name: str) -> Execution:
        execution = self.granted(name)
        over = clock.now() + PAST
        Grant.objects.filter(pk=execution.grant_id).update(expires_at=over)
        return execution


@pytest.fixture
def wrong(gate: Gate, _stack: Stack, tmp_path: Path) -> Iterator[Stack]:
    """A stack whose clocks are to be wrong; nothing of it runs yet."""
    stack = make(tmp_path / "state")
    _stack.collect()
    (stack.state / "static").symlink_to(_stack.state / "static")
    stack.extra["PYTHONPATH"] = str(ROOT / "tests/skewed")
    try:
        yield stack
    finally:
        stack.stop()
        _stack.empty_broker()


@pytest.fixture(params=[SKEW_S, -SKEW_S], ids=["fast", "slow"])
def skewed(
    request: pytest.FixtureRequest, gate: Gate, wrong: Stack
) -> Iterator[Skewed]:
    wrong.extra["SKEW"] = str(request.param)
    token = tokens.create_token(person=gate.rita, name="script")
    headers = {"Authorization": f"Bearer {token}"}
    wrong.start_web()
    with httpx2.Client(
        base_url=wrong.base_url, headers=headers, timeout=30, trust_env=False
    ) as reviewer:
        yield Skewed(gate, wrong, reviewer)


@pytest.fixture
def stepping(wrong: Stack) -> Callable[[int], None]:
    """`stepping(-3600)`: the clock under a worker that runs is put back an hour."""
    told = wrong.state / "skew"
    told.write_text("0")
    wrong.extra["SKEW_FROM"] = str(told)
    wrong.start_worker(processes=1)

    def step(seconds: int) -> None:
        told.with_suffix(".new").write_text(str(seconds))
        told.with_suffix(".new").replace(told)

    return step


def test_sweeps_go_on_when_the_clock_jumps(
    gate: Gate,
    wrong: Stack,
    stepping: Callable[[int], None],
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    jumps = proof_n(small=2, full=20)
    slowest = 0.0
    for number in range(jumps):
        stepping(-STEP_S * (number + 1) if number % 2 else STEP_S)
        request = propose(gate.agent, thread=f"jump-{number}").request
        ApprovalRequest.objects.filter(pk=request.pk).update(expires_at=clock.now())
        began = time.monotonic()
        done = partial(settled, runs=[], refused=[], expired=[request])
        wait_until(done, 15, lambda: wrong.log("worker"))
        slowest = max(slowest, time.monotonic() - began)
    record_proof(
        "T8",
        f"clock of a running worker put an hour and more forth and back {jumps} times:"
        f" swept each time, after at most {slowest:.1f} s",
    )


def test_a_wrong_clock_of_ours_decides_nothing(
    skewed: Skewed,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    n = proof_n(small=2, full=100)
    alive = [skewed.ask(f"alive-{i}", SOON) for i in range(n)]
    late = [skewed.ask(f"late-{i}", PAST) for i in range(n)]
    lapsed = [skewed.claimed(f"lapsed-{i}", PAST) for i in range(n)]
    held = [skewed.claimed(f"held-{i}", SOON) for i in range(n)]
    closed = [skewed.closed(f"closed-{i}") for i in range(n)]
    assert {skewed.approve(request).status_code for request in alive} == {200}
    assert {skewed.approve(request).status_code for request in late} == {410}
    assert not Decision.objects.filter(request__in=late).exists()
    skewed.stack.start_worker(processes=1)
    done = partial(
        settled, runs=lapsed + executions(alive), refused=closed, expired=late
    )
    wait_until(done, 60 + n, lambda: skewed.stack.log("worker"))
    for execution in held:
        fence = execution.fence
        execution.refresh_from_db()
        assert (execution.status, execution.fence) == (ExecutionStatus.CLAIMED, fence)
    assert len(worlds.effects()) == 2 * n
    record_proof(
        "T8",
        f"web and worker {skewed.stack.extra['SKEW']} s wrong: {n} decided in time,"
        f" 0 of {n} after their deadline; {n} lapsed leases taken over, 0 of {n} held"
        f" ones; {n} closed windows refused (each 0 at most {300 / n:.0f} %)",
    )


def executions(requests: list[ApprovalRequest]) -> list[Execution]:
    return [request.proposal.executions.get() for request in requests]


def settled(
    *, runs: list[Execution], refused: list[Execution], expired: list[ApprovalRequest]
) -> bool:
    for row in [*runs, *refused, *expired]:
        row.refresh_from_db()
    return (
        all(row.status == ExecutionStatus.SUCCEEDED for row in runs)
        and all(row.status == ExecutionStatus.REFUSED for row in refused)
        and all(row.status == RequestStatus.EXPIRED for row in expired)
    )


def test_who_waited_for_a_lock_is_judged_by_the_time_after_it(
    gate: Gate,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    """The transaction began before the deadline; it decides after it, or not at all."""
    rounds, at_once = proof_n(small=1, full=25), 4
    with Together(at_once) as together:
        for number in range(rounds):
            requests = [
                propose(gate.agent, customer=f"C-{number}-{i}").request
                for i in range(at_once)
            ]
            results = together.run(
                [partial(_begin_in_time, request, gate) for request in requests]
            )
            assert all(isinstance(r.refusal, RequestExpired) for r in results)
    assert not Decision.objects.exists()
    tried = rounds * at_once
    record_proof(
        "T8",
        f"{tried} verdicts that began in time and got their lock after the deadline:"
        f" 0 decided (at most {300 / tried:.0f} %)",
    )


def _begin_in_time(request: ApprovalRequest, gate: Gate) -> None:
    """Somebody has the row when the verdict comes, and gives it back too late."""
    soon = clock.now() + timedelta(seconds=0.4)
    ApprovalRequest.objects.filter(pk=request.pk).update(expires_at=soon)
    locked = threading.Event()
    rival = threading.Thread(target=_hold, args=[request.pk, locked])
    rival.start()
    locked.wait(10)
    try:
        decide(request, gate.rita)
    finally:
        rival.join()


def _hold(pk: str, locked: threading.Event) -> None:
    with transaction.atomic():
        ApprovalRequest.objects.select_for_update().get(pk=pk)
        locked.set()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(0.8)")
    connection.close()

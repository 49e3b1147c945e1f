"""Processes die by SIGKILL at named points, messages come four times, the broker is
emptied or lied to: every effect happens at most once and nothing is lost (T4, T5)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from celery import current_app

from agents import keys
from hitl import connections
from journal import sequencer
from journal.models import LogPosition, LogRecord, OutboxMessage
from reviews.alarms import watch
from reviews.choices import ExecutionStatus, RequestStatus
from reviews.models import Alarm, ApprovalRequest, Decision, Execution, Grant, Proposal
from reviews.people import tokens
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, proposal_body, propose
from tests.reviews import states
from tests.stack import Stack, wait_until

pytestmark = [
    pytest.mark.servers,
    pytest.mark.proof,
    pytest.mark.django_db(transaction=True),
]

# A ladder that ends soon, so that a lapsed lease is not waited for long.
SHORT = {
    "HTTP_TIMEOUT": "1",
    "SOFT_TIME_LIMIT": "4",
    "TIME_LIMIT": "5",
    "LEASE_SECONDS": "7",
    "VISIBILITY_TIMEOUT": "12",
}
TOOLS = ["pay", "pay_queryable", "pay_opaque"]
# Where a worker dies -> what becomes of an opaque tool's effect, which nobody can look
# up: the status, and how often it happened.
DONE, UNKNOWN = ExecutionStatus.SUCCEEDED, ExecutionStatus.UNKNOWN
POINTS = {
    "message_uncommitted": (DONE, 1),
    "message_claimed": (DONE, 1),
    "before_claim": (DONE, 1),
    "claim_uncommitted": (DONE, 1),
    "after_claim": (UNKNOWN, 0),
    "rechecked": (UNKNOWN, 0),
    "before_effect": (UNKNOWN, 0),
    "after_effect": (UNKNOWN, 1),
    "before_record": (UNKNOWN, 1),
    "record_uncommitted": (UNKNOWN, 1),
    "after_record": (DONE, 1),
    "before_done": (DONE, 1),
}
DELIVERIES = 4
ROUND = 5  # of each point and class under one worker


@pytest.fixture
def short(live: Stack) -> Iterator[Stack]:
    """Workers of this stack have short leases."""
    live.extra.update(SHORT)
    yield live
    for name in SHORT:
        del live.extra[name]


@dataclass(frozen=True)
class Run:
    """One execution whose worker is to die at one point."""

    tool: str
    point: str
    execution: Execution
    flag: Path

    def effects(self, happened: Counter[str]) -> int:
        return happened[self.execution.idempotency_key]


def granted(gate: Gate, number: int, tool: str = "pay") -> Execution:
    request = propose(
        gate.agent, tool, customer=f"C-{number}", thread=f"t-{number}"
    ).request
    decide(request, gate.rita)
    return Execution.objects.get(proposal=request.proposal_id)


def deliver(execution: Execution, times: int = DELIVERIES) -> None:
    """The nudge and the sweep's hand-over, again and again."""
    message = OutboxMessage.objects.get(subject=execution.pk, topic="execution.queued")
    for _ in range(times):
        current_app.send_task("hitl.tasks.execute", args=[message.pk])
        current_app.send_task("hitl.tasks.run_execution", args=[execution.pk])


def finished() -> bool:
    """Nothing of the gate's own is under way, and every promise is kept."""
    open_now = Execution.objects.filter(
        status__in=[ExecutionStatus.QUEUED, ExecutionStatus.CLAIMED], by_agent=False
    )
    return not open_now.exists() and not unkept().exists()


def unkept() -> Any:
    return OutboxMessage.objects.filter(topic="execution.queued", done_at=None)


def happened() -> Counter[str]:
    return Counter(key for _, key, _ in worlds.effects())


def test_a_worker_killed_anywhere_never_doubles_or_loses_an_effect(
    gate: Gate,
    short: Stack,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    """T4, I19, I20, I25: twelve points, three classes of tools; the other points are
    in test_crash_points.py."""
    times = proof_n(small=1, full=50)
    runs: list[Run] = []
    for first in range(0, times, ROUND):
        runs += killed(gate, short, range(first, min(first + ROUND, times)))
    counted = happened()
    for run in runs:
        check(run, counted)
    check_log(runs)
    watch.sweep_alarms()
    assert not Alarm.objects.exists()  # what recovers is nobody's alarm
    record_proof(
        "alarms",
        f"{len(runs)} executions whose worker was killed: 0 false alarms"
        f" (at most {300 / len(runs):.2f} %)",
    )
    record_proof(
        "T4",
        f"{len(POINTS)} kill points x {times} x {len(TOOLS)} tool classes, each"
        f" delivered {2 * DELIVERIES + 1} times: {len(runs)} killed, 0 double effects,"
        " 0 lost; keyed and queryable exactly one, opaque at most one"
        f" (at most {300 / len(runs):.2f} %)",
    )


def killed(gate: Gate, stack: Stack, numbers: range) -> list[Run]:
    """So many of each point and class, each of whose workers died."""
    runs = [
        armed(gate, stack, tool, point, f"{tool}-{point}-{n}")
        for point in POINTS
        for tool in TOOLS
        for n in numbers
    ]
    stack.start_worker(processes=4)
    wait_until(
        lambda: finished() and not any(run.flag.exists() for run in runs),
        60 + 30 * len(numbers),
        lambda: f"{left(runs)}\n{stack.log('worker')}",
    )
    stack.kill_worker()
    return runs


def armed(gate: Gate, stack: Stack, tool: str, point: str, name: str) -> Run:
    request = propose(gate.agent, tool, customer=name, thread=name).request
    decide(request, gate.rita)
    execution = Execution.objects.get(proposal=request.proposal_id)
    deliver(execution)
    return Run(tool, point, execution, stack.arm(point, execution.pk))


def left(runs: list[Run]) -> str:
    waiting = [f"{r.tool} {r.point}" for r in runs if r.flag.exists()]
    rows = Execution.objects.exclude(status__in=[DONE, UNKNOWN])
    open_now = [(x.pk, x.status, x.attempts, x.code) for x in rows]
    return f"not killed: {waiting}; open: {open_now}; unkept: {list(unkept())}"


def check(run: Run, counted: Counter[str]) -> None:
    run.execution.refresh_from_db()
    expected = POINTS[run.point] if run.tool == "pay_opaque" else (DONE, 1)
    found = (run.execution.status, run.effects(counted))
    assert found == expected, (run.tool, run.point)
    assert run.execution.status != ExecutionStatus.FAILED


def check_log(runs: list[Run]) -> None:
    """Each ended once, and the log has every record in one dense order."""
    for run in runs:
        ends = LogRecord.objects.filter(
            proposal=run.execution.proposal_id,
            kind__in=["execution.succeeded", "execution.unknown"],
        )
        assert ends.count() == 1
    wait_until(partial(placed, LogRecord.objects.count()), 20)
    seqs = list(LogPosition.objects.order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(len(seqs)))


def placed(records: int) -> bool:
    sequencer.sequence_records()
    return LogPosition.objects.count() >= records


def test_timers_killed_before_their_commit_do_their_work_once(
    gate: Gate, short: Stack, record_proof: Callable[[str, str], None]
) -> None:
    """I6, I26: the end of a recall window and a deadline, each killed half way."""
    states.recall_windows(gate, 1)
    held = [propose(gate.agent, customer=f"C-{n}").request for n in range(4)]
    late = [propose(gate.agent, customer=f"D-{n}").request for n in range(4)]
    for request in held:
        decide(request, gate.rita)
    for request in late:
        factories.overdue(request)
    flags = [
        short.arm("window_uncommitted", held[2].pk),
        short.arm("expiry_uncommitted"),
    ]
    short.start_worker()

    def over() -> bool:
        waiting = ApprovalRequest.objects.filter(settled_at=None)
        return not waiting.exists() and finished()

    wait_until(lambda: over() and not any(f.exists() for f in flags), 60)
    for request in held:
        check_settled(request, RequestStatus.AUTHORIZED, "request.authorized", 1)
    for request in late:
        check_settled(request, RequestStatus.EXPIRED, "request.expired", 0)
    assert sorted(happened().values()) == [1] * len(held)
    record_proof(
        "T4", "2 timers killed before their commit, 8 requests: done once each"
    )


def check_settled(
    request: ApprovalRequest, status: RequestStatus, kind: str, grants_: int
) -> None:
    request.refresh_from_db()
    assert request.status == status
    assert LogRecord.objects.filter(request=request.pk, kind=kind).count() == 1
    assert Grant.objects.filter(proposal=request.proposal_id).count() == grants_


class Web:
    """The web process, dying and coming back, and its two kinds of clients."""

    def __init__(self, gate: Gate, stack: Stack) -> None:
        self.stack = stack
        self.agent = keys.issue_key(agent=gate.agent, by=gate.owen)
        self.person = tokens.create_token(person=gate.rita, name="script")

    def propose(self, key: str) -> httpx2.Response:
        body = proposal_body(thread=f"t-{key}", customer=f"C-{key}")
        return self.post(
            "/proposals",
            self.agent,
            body.model_dump(mode="json", exclude_unset=True),
            **{"Idempotency-Key": key},
        )

    def approve(self, request: ApprovalRequest) -> httpx2.Response:
        said = {"version": request.version, "action_hash": request.action_hash}
        path = f"/requests/{request.pk}/decide"
        return self.post(path, self.person, {**said, "verdict": "approve"})

    def post(self, path: str, token: str, body: Any, **more: str) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {token}", **more}
        return httpx2.post(
            f"{self.stack.base_url}/api/v1{path}",
            content=json.dumps(body),
            headers={"Content-Type": "application/json", **headers},
            timeout=20,
            trust_env=False,
        )

    def dies(self, point: str, subject: str, call: Callable[[], Any]) -> None:
        """The call that runs into the point gets no answer; then the web is back."""
        flag = self.stack.arm(point, subject)
        with pytest.raises(httpx2.TransportError):
            call()
        assert not flag.exists()
        wait_until(self._gone, 10)
        self.stack.start_web()

    def _gone(self) -> bool:
        return self.stack.web is None or self.stack.web.exit_code() is not None


def test_a_web_process_killed_anywhere_leaves_all_or_nothing(
    gate: Gate, live: Stack, record_proof: Callable[[str, str], None]
) -> None:
    """T4, I1, I26: before the commit nothing is there; after it everything is, and the
    same call once more gets its answer. The nudges that were never sent are made up
    for by the sweep."""
    web = Web(gate, live)
    web.dies("proposed_uncommitted", "t-one", partial(web.propose, "one"))
    assert not Proposal.objects.exists()
    assert not LogRecord.objects.filter(kind="proposal.submitted").exists()
    assert web.propose("one").status_code == 201
    web.dies("before_nudge", "", partial(web.propose, "two"))
    again = web.propose("two")
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
    first, second = ApprovalRequest.objects.order_by("opened_at")
    web.dies("decided_uncommitted", first.pk, partial(web.approve, first))
    assert not Decision.objects.exists()
    assert web.approve(first).status_code == 200
    web.dies("before_nudge", "", partial(web.approve, second))
    assert web.approve(second).status_code == 200  # as before: it changes nothing
    assert Decision.objects.count() == Grant.objects.count() == 2
    live.start_worker(processes=1)
    wait_until(finished, 60, lambda: live.log("worker"))
    assert sorted(happened().values()) == [1, 1]
    record_proof("T4", "4 kills of the web: nothing or all of it, once")


def test_an_emptied_broker_loses_nothing(
    gate: Gate,
    live: Stack,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    """T5, I25: everything the broker held is gone, several times, while the workers
    work; the sweeps send again what was promised."""
    live.start_worker()
    count = proof_n(small=12, full=300)
    for number in range(count):
        granted(gate, number, TOOLS[number % 3])
        if number % 3 == 2:
            live.empty_broker()
    wait_until(finished, 90, lambda: live.log("worker"))
    assert sorted(happened().values()) == [1] * count
    assert set(Execution.objects.values_list("status", flat=True)) == {DONE}
    record_proof(
        "T5",
        f"broker emptied {count // 3} times under {count} executions: 0 lost, 0 doubled"
        f" (at most {300 / count:.0f} %)",
    )


def test_a_forged_message_has_no_effect(
    gate: Gate,
    live: Stack,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    """T5, I18, I25: whoever can write to the broker can only name rows, and a row that
    may not run does not run."""
    waiting = propose(gate.agent)
    redeemed_by_agent = agents_own(gate)
    done = granted(gate, 1)
    live.start_worker(processes=1)
    wait_until(finished, 60, lambda: live.log("worker"))
    own = Execution.objects.get(pk=done.pk)
    wrong = OutboxMessage.objects.filter(topic="request.opened").first()
    assert wrong is not None
    forged = [waiting.pk, waiting.request.pk, redeemed_by_agent.pk, own.pk, "x-nobody"]
    sent = [("hitl.tasks.run_execution", [name]) for name in forged]
    sent += [("hitl.tasks.execute", args) for args in junk(wrong.pk)]
    sent += [("os.system", ["true"])]
    sent *= proof_n(small=1, full=25)
    for task, args in sent:
        current_app.send_task(task, args=args)
    last = granted(gate, 2)
    wait_until(finished, 60, lambda: live.log("worker"))
    wait_until(lambda: broker_is_empty(), 20)
    keys_ = {own.idempotency_key, last.idempotency_key}
    assert happened() == dict.fromkeys(keys_, 1)
    redeemed_by_agent.refresh_from_db()
    assert redeemed_by_agent.status == ExecutionStatus.QUEUED
    most = 300 / len(sent)
    record_proof("T5", f"{len(sent)} forged messages: 0 effects (at most {most:.0f} %)")


def junk(another: int) -> list[list[Any]]:
    """Another task's message, none at all, and what is no message's name."""
    return [[another], [987_654_321], [-1], [], [{"a": 1}], ["'; DROP TABLE", 2]]


def agents_own(gate: Gate) -> Execution:
    request = propose(gate.agent, "deploy").request
    decide(request, gate.sue)
    decide(request, gate.sam)
    return Execution.objects.get(proposal=request.proposal_id)


def broker_is_empty() -> bool:
    """No message waits, so that the forged ones have been read."""
    with current_app.connection_for_read() as connection:
        channel = connection.default_channel
        return not any(channel._size(queue.name) for queue in connections.QUEUES)

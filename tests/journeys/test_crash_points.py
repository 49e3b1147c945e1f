"""Every fault point that is not on the way of one execution (test_crash.py): a process
dies there, the same is asked for four times more, sweeps and workers take up what is
left, and all of it is there exactly once: effects, and the records that tell of it (T4,
I1, I19, I26)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import redis
from django.conf import settings

from agents import intake, proposals
from assurance import insertion
from hitl import tasks
from journal import clock, failpoints, log, sequencer, sweeps
from journal.errors import DomainError
from journal.models import LogPosition, LogRecord, OutboxMessage
from policies import tools
from policies.models import Person
from reviews import canary_verdicts, deadlines
from reviews.batches import decide as batches
from reviews.batches import formation
from reviews.choices import CanaryEnding, ExecutionStatus, Scope
from reviews.decisions import decide as decisions
from reviews.decisions import recall
from reviews.executions import record, redeem, run, settle
from reviews.executions.claims import Claim
from reviews.grants import tokens
from reviews.models import ApprovalRequest, Batch, Canary, Execution
from reviews.stops import stops
from reviews.tool_services.executors import Call, EffectOutcome
from tests import factories, worlds
from tests.assurance.planting import approve_source
from tests.conftest import Gate
from tests.factories import decide, proposal_body, propose, said
from tests.journeys import by_hand, dying, test_crash
from tests.reviews import states
from tests.reviews.batches import batching

pytestmark = [
    pytest.mark.proof,
    pytest.mark.django_db(transaction=True),
]

TOOLS = ["pay", "pay_queryable", "pay_opaque"]
AGAIN = 4  # deliveries of the same after the death
RAN = {"execution.claimed": 1, "execution.succeeded": 1}
DECIDED = {
    "decision.recorded": 1,
    "request.authorized": 1,
    "grant.issued": 1,
    "execution.queued": 1,
    **RAN,
}


@dataclass
class Trial:
    """What somebody does when the process dies, and how often it must have happened
    in the end: effects, and records of each kind."""

    work: dying.Work
    told: Mapping[str, int]
    subject: str = ""
    effects: int = 1


Prepare = Callable[[Gate, str, str], Trial]


def asked(gate: Gate, tool: str, name: str) -> ApprovalRequest:
    found: ApprovalRequest = propose(
        gate.agent, tool, customer=name, thread=name
    ).request
    return found


def proposing(gate: Gate, tool: str, name: str) -> Trial:
    body = proposal_body(tool, customer=name, thread=name)
    key = intake.parse_call_key(name, "POST", "/proposals", body.model_dump())

    def work() -> None:
        made = intake.build_proposal_input(gate.agent, body)
        stored = proposals.propose_action(agent=gate.agent, key=key, asked=made)
        decide(ApprovalRequest.objects.get(proposal=stored.proposal), gate.rita)

    told = {"proposal.submitted": 1, "request.opened": 1, **DECIDED}
    return Trial(work, told, name)


def deciding(gate: Gate, tool: str, name: str) -> Trial:
    request = asked(gate, tool, name)
    meant = said(request, gate.rita)
    return Trial(lambda: decisions.decide_request(meant), DECIDED, request.pk)


def telling(gate: Gate, tool: str, name: str) -> Trial:
    """Dies once it is committed: nobody hears of it."""
    trial = deciding(gate, tool, name)
    trial.subject = ""
    return trial


def many(gate: Gate, tool: str, name: str) -> Trial:
    batching.proposed(gate, "7.00", "8.00", group=name)
    formation.form_missed_batches()
    batch = Batch.objects.latest("formed_at")
    meant = partial(batching.said, batch, gate.rita)
    told = {kind: 2 * count for kind, count in DECIDED.items()}
    told["batch.decided"] = 1
    return Trial(lambda: batches.decide_batch(meant()), told, batch.pk, effects=2)


def held(gate: Gate, tool: str, name: str) -> ApprovalRequest:
    states.recall_windows(gate)
    request = asked(gate, tool, name)
    return decide(request, gate.rita)


def closing(gate: Gate, tool: str, name: str) -> Trial:
    request = held(gate, tool, name)
    past = request.opened_at
    ApprovalRequest.objects.filter(pk=request.pk).update(recall_until=past)
    told = {kind: n for kind, n in DECIDED.items() if kind != "decision.recorded"}
    return Trial(deadlines.close_recall_windows, told, request.pk)


def recalling(gate: Gate, tool: str, name: str) -> Trial:
    request = held(gate, tool, name)
    taken = partial(recall.recall_approval, request_id=request.pk, person=gate.rita)
    return Trial(taken, {"request.recalled": 1}, request.pk, effects=0)


def expiring(gate: Gate, tool: str, name: str) -> Trial:
    factories.overdue(asked(gate, tool, name))
    return Trial(deadlines.expire_chunk, {"request.expired": 1}, effects=0)


def stopping(gate: Gate, tool: str, name: str) -> Trial:
    asked(gate, tool, name)
    key = f"{gate.agent.slug}/{name}"
    row = stops.create_stop(
        scope=Scope.THREAD, key=key, person=gate.sue, reason="wrong"
    )
    message = OutboxMessage.objects.get(topic="stop.raised", subject=str(row.pk))

    def work() -> None:
        OutboxMessage.objects.filter(pk=message.pk).update(held_until=None)
        tasks.enforce_stop(message.pk)

    return Trial(work, {"request.withdrawn": 1}, effects=0)


def sweeping(gate: Gate, tool: str, name: str) -> Trial:
    decide(asked(gate, tool, name), gate.rita)
    OutboxMessage.objects.update(due_at="2020-01-01T00:00Z")
    with redis.Redis.from_url(settings.COUNTERSEAL.redis_url) as broker:
        broker.flushdb()  # nobody takes from it here: there must be room in the queues
    return Trial(sweeps.send_due_messages, RAN)


def placing(gate: Gate, tool: str, name: str) -> Trial:
    decide(asked(gate, tool, name), gate.rita)
    return Trial(sequencer.sequence_records, RAN)


def looking_up(gate: Gate, tool: str, name: str) -> Trial:
    """The first attempt was lost after its effect; the second dies with the answer."""
    execution = states.claimed(gate, "pay_queryable")
    worlds.plain(call_of(execution))
    factories.lapsed(execution)
    told = {"execution.succeeded": 1}
    return Trial(lambda: run.run_execution(execution.pk), told, execution.pk)


def call_of(execution: Execution) -> Call:
    execution.refresh_from_db()
    definition = tools.load_definition(execution.grant.revision.known_tool)
    return Claim(execution, definition, execution.fence, untouched=False).call


def redeemed(gate: Gate, tool: str, name: str) -> Trial:
    """The agent takes its grant, and hears nothing of it: it takes it again."""
    request = propose(gate.agent, "deploy", thread=name).request
    decide(request, gate.sue)
    decide(request, gate.sam)
    execution = Execution.objects.get(proposal=request.proposal_id)
    token = tokens.load_token(execution.grant_id)

    def work() -> None:
        execution.refresh_from_db()
        if execution.status == ExecutionStatus.CLAIMED:
            factories.lapsed(execution)
        fence = redeem.redeem_grant(token=token, agent="riley").fence
        record.record_outcome(
            execution_id=execution.pk,
            fence=fence,
            outcome=EffectOutcome("succeeded", {"ref": "v1"}),
            actor=log.Actor("agent", "riley"),
        )

    return Trial(work, {"execution.succeeded": 1}, execution.pk, effects=0)


def settling(gate: Gate, tool: str, name: str) -> Trial:
    execution = states.unknown(gate)
    answer = partial(
        settle.settle_unknown,
        execution_id=execution.pk,
        person=gate.sue,
        happened=False,
        reason="the service has no trace of it",
    )
    return Trial(answer, {"execution.settled": 1}, execution.pk, effects=0)


def executing(gate: Gate, tool: str, name: str) -> Trial:
    request = asked(gate, tool, name)
    decide(request, gate.rita)
    execution = Execution.objects.get(proposal=request.proposal_id)
    message = OutboxMessage.objects.get(topic="execution.queued", subject=execution.pk)

    def work() -> None:
        OutboxMessage.objects.filter(pk=message.pk).update(held_until=None)
        tasks.execute(message.pk)

    point, _, _ = name.rpartition("-")
    _, effects = test_crash.POINTS[point] if tool == "pay_opaque" else (None, 1)
    return Trial(work, {}, execution.pk, effects)


def retrying(gate: Gate, tool: str, name: str) -> Trial:
    execution = states.failed(gate)
    again = partial(settle.retry_execution, execution_id=execution.pk, person=gate.rita)
    told = {"execution.retried": 1, "execution.claimed": 1, "execution.failed": 1}
    return Trial(again, told, execution.pk, effects=0)


def planting(gate: Gate, tool: str, name: str) -> Trial:
    """The one effect is that of the request which the canary is cloned from."""
    rita = Person.objects.get(pk=gate.rita.pk)
    for open_ in Canary.objects.filter(ending=""):
        canary_verdicts.end_undecided_canary(
            request_id=open_.proposal.request.pk, ending=CanaryEnding.EXPIRED
        )
    approve_source(gate)
    clone = insertion.prepare_clone(rita, clock.now())
    assert clone is not None
    work = partial(insertion.plant_canary, person=rita, clone=clone, next_after=45)
    return Trial(work, {"canary.planted": 1})


POINTS: dict[str, Prepare] = {
    "proposed_uncommitted": proposing,
    "decided_uncommitted": deciding,
    "grant_uncommitted": deciding,
    "before_nudge": telling,
    "before_announce": telling,
    "batch_uncommitted": many,
    "window_uncommitted": closing,
    "recall_uncommitted": recalling,
    "expiry_uncommitted": expiring,
    "stop_uncommitted": stopping,
    "stop_enforced": stopping,
    "swept_unmoved": sweeping,
    "sequence_uncommitted": placing,
    "looked_up": looking_up,
    "redeem_taken": redeemed,
    "redeemed": redeemed,
    "settle_uncommitted": settling,
    "retry_uncommitted": retrying,
    "canary_uncommitted": planting,
}


BREAKING: dict[str, Prepare] = {
    **POINTS,
    **dict.fromkeys(test_crash.POINTS, executing),
}
OF_A_RESTORE = {"epoch_uncommitted"}  # tests/reviews/test_recovery.py
OF_MAIL = {"mail_taken"}  # tests/notifications/test_crash.py
# tests/agents/webhooks/test_crash.py
OF_THE_POST = {
    "deliveries_uncommitted",
    "delivery_taken",
    "delivery_answered",
    "delivery_uncommitted",
    "acknowledged_uncommitted",
}


def test_every_point_is_died_at_somewhere() -> None:
    elsewhere = {*test_crash.POINTS, *OF_THE_POST, *OF_MAIL, *OF_A_RESTORE}
    assert {*POINTS, *elsewhere} == set(failpoints.POINTS)


def play(
    gate: Gate, folder: Path, point: str, n: int, end: Callable[..., bool]
) -> None:
    """One process comes to this end at this point; then all is as if it had not."""
    tool = TOOLS[(list(BREAKING).index(point) + n) % len(TOOLS)]
    before = len(worlds.effects())
    trial = BREAKING[point](gate, tool, f"{point}-{n}")
    since = LogRecord.objects.latest("pk").pk
    flag = f"{point}@{trial.subject}" if trial.subject else point
    assert end(trial.work, folder, flag), (point, n)
    for _ in range(AGAIN):
        with suppress(DomainError):
            trial.work()
    by_hand.take_up()
    assert len(worlds.effects()) - before == trial.effects, (point, tool, n)
    assert told(since, trial.told) == dict(trial.told), (point, tool, n)


@pytest.fixture
def playing(
    gate: Gate, broker: redis.Redis, tmp_path: Path, point: str
) -> Callable[..., None]:
    """`playing(n, dying.dies)`: one trial of this test's point."""
    folder = tmp_path / "flags"
    folder.mkdir()
    return partial(play, gate, folder, point)


@pytest.mark.parametrize("point", BREAKING)
def test_what_raises_half_way_is_there_once_or_not_at_all(
    point: str,
    playing: Callable[..., None],
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    times = proof_n(small=1, full=10 * len(TOOLS))
    for n in range(times):
        playing(n, dying.breaks)
    check_log()
    record_proof(
        "T4",
        f"{point}: {times} exceptions, each asked for {AGAIN} times more: the same"
        f" (0 lost or doubled: at most {300 / times:.0f} %)",
    )


@pytest.mark.parametrize("point", POINTS)
def test_what_dies_half_way_is_there_once_or_not_at_all(
    point: str,
    playing: Callable[..., None],
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    times = proof_n(small=1, full=50 * len(TOOLS))
    for n in range(times):
        playing(n, dying.dies)
    check_log()
    record_proof(
        "T4",
        f"{point}: {times} deaths, each asked for {AGAIN} times more: all there once,"
        f" effects and records, 0 lost, 0 doubled (at most {300 / times:.2f} %)",
    )


def told(since: int, kinds: Mapping[str, int]) -> dict[str, int]:
    """How many records of these kinds there are from here on."""
    found = LogRecord.objects.filter(pk__gt=since, kind__in=kinds)
    return dict(Counter(found.values_list("kind", flat=True)))


def check_log() -> None:
    """Every record has one place, and places have no gap."""
    while sequencer.sequence_records():
        pass
    seqs = list(LogPosition.objects.order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(LogRecord.objects.count()))

"""A broker that repeats, reorders and delays: as many effects as approvals (T5)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from celery import current_app

from journal import clock
from journal.models import OutboxMessage
from reviews.choices import ExecutionStatus
from reviews.models import Execution, Grant
from tests import worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.stack import Stack, wait_until

pytestmark = [
    pytest.mark.servers,
    pytest.mark.proof,
    pytest.mark.django_db(transaction=True),
]

TOOLS = ["pay", "pay_queryable", "pay_opaque"]
NAMES = ["hitl.tasks.execute", "hitl.tasks.run_execution"]
# A file with a line for each delivery. (Importing tests.impatient would make this very
# process impatient.)
DELIVERED = "COUNTERSEAL_TEST_DELIVERED"
SENT = 3  # times by whoever can write to the broker


@pytest.fixture
def impatient(
    live: Stack, tmp_path: Path, proof_n: Callable[..., int]
) -> Iterator[Stack]:
    """Effects take longer than the broker waits for an answer."""
    live.app = "tests.impatient"
    live.extra[worlds.TAKES] = str(proof_n(small=4, full=12))
    live.extra[DELIVERED] = str(tmp_path / "delivered")
    yield live
    live.app = "hitl.celery"
    del live.extra[worlds.TAKES], live.extra[DELIVERED]


def granted(gate: Gate, number: int) -> Execution:
    tool = TOOLS[number % len(TOOLS)]
    request = propose(gate.agent, tool, customer=f"C-{number}").request
    decide(request, gate.rita)
    return Execution.objects.select_related("grant").get(proposal=request.proposal_id)


def messages(executions: list[Execution]) -> list[int]:
    found = OutboxMessage.objects.filter(
        topic="execution.queued", subject__in=[one.pk for one in executions]
    )
    return list(found.values_list("pk", flat=True))


def send(numbers: list[int]) -> None:
    for number in random.sample(numbers, len(numbers)):
        current_app.send_task("hitl.tasks.execute", args=[number])


def done(executions: list[Execution]) -> bool:
    ids = [one.pk for one in executions]
    kept = OutboxMessage.objects.filter(subject__in=ids, done_at=None)
    status = ExecutionStatus.SUCCEEDED
    ran = Execution.objects.filter(pk__in=ids, status=status).count()
    return ran == len(ids) and not kept.exists()


def deliveries(stack: Stack) -> int:
    lines = Path(stack.extra[DELIVERED]).read_text().splitlines()
    return sum(map(lines.count, NAMES))


def happened() -> Counter[str]:
    return Counter(key for _, key, _ in worlds.effects())


def test_what_is_given_out_again_while_it_runs_happens_once(
    gate: Gate,
    impatient: Stack,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    """I19, I25: a visibility timeout shorter than the effect, messages sent again in
    any order, and old ones once more when all is over."""
    executions = [granted(gate, n) for n in range(proof_n(small=3, full=30))]
    numbers = messages(executions)
    for _ in range(SENT):
        send(numbers)
    for _ in range(2):
        impatient.start_worker(processes=4)
    wait_until(lambda: done(executions), 300, lambda: impatient.log("worker"))
    send(numbers)
    last = granted(gate, len(executions))
    wait_until(lambda: done([*executions, last]), 60)
    delivered = deliveries(impatient)
    assert delivered >= 5 * len(executions)
    once = dict.fromkeys((one.idempotency_key for one in [*executions, last]), 1)
    assert happened() == once
    record_proof(
        "T5",
        f"{len(once)} approvals, effects longer than the broker's visibility timeout,"
        f" {delivered} deliveries in any order ({delivered / len(once):.1f} each):"
        f" {len(once)} effects (0 more: at most {3 / len(once):.1%})",
    )


def test_a_message_an_hour_late_does_nothing(
    gate: Gate,
    live: Stack,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    """I21: what was granted an hour ago is not begun any more."""
    late = [granted(gate, n) for n in range(proof_n(small=3, full=100))]
    hour = timedelta(hours=1)
    for one in late:
        past = {"issued_at": one.grant.issued_at - hour}
        past["expires_at"] = one.grant.expires_at - hour
        Grant.objects.filter(pk=one.grant_id).update(**past)
        Execution.objects.filter(pk=one.pk).update(due_at=clock.now() - hour)
    send(messages(late))
    live.start_worker(processes=1)
    refused = Execution.objects.filter(status="refused", code="window_closed")
    wait_until(lambda: refused.count() == len(late), 30)
    assert not happened()
    record_proof(
        "T5",
        f"{len(late)} messages an hour late: 0 effects, each refused"
        f" (at most {300 / len(late):.0f} %)",
    )

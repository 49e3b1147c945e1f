"""A tool ends its worker's process in the middle of its effect, in every way there is:
by its own exit, at the soft and the hard time limit, out of memory, killed (T4, I19,
I20)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests import worlds
from tests.conftest import Gate
from tests.journeys.test_crash import DONE, SHORT, TOOLS, UNKNOWN, finished, happened
from tests.reviews.executions.attempts import granted
from tests.stack import Stack, wait_until

pytestmark = [
    pytest.mark.servers,
    pytest.mark.proof,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def ending(live: Stack) -> Iterator[Stack]:
    """Workers whose tools end them."""
    more = {**SHORT, worlds.ENDS: "1"}
    live.extra.update(more)
    yield live
    for name in more:
        del live.extra[name]


def test_a_tool_that_ends_its_process_did_it_once(
    gate: Gate,
    ending: Stack,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    times = proof_n(small=1, full=20)
    runs = [
        (tool, granted(gate, tool, customer=name, thread=name))
        for way in worlds.WAYS
        for tool in TOOLS
        for n in range(times)
        for name in [f"{way}:{tool}-{n}"]
    ]
    ending.start_worker(processes=4)
    patience = 60 + 30 * times
    wait_until(finished, patience, lambda: ending.log("worker"))
    counted = happened()
    for tool, execution in runs:
        execution.refresh_from_db()
        end = UNKNOWN if tool == "pay_opaque" else DONE
        assert execution.status == end, (tool, execution.proposal.thread)
        assert counted[execution.idempotency_key] == 1, execution.proposal.thread
    record_proof(
        "T4",
        f"tools that ended their process once their effect was there, in"
        f" {len(worlds.WAYS)} ways ({', '.join(worlds.WAYS)}) x {len(TOOLS)} classes x"
        f" {times}: {len(runs)} effects, each once, and {len(runs) // 3} opaque ones"
        f" unknown (0 doubled or lost: at most {300 / len(runs):.2f} %)",
    )

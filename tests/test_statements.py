"""How many SQL statements the operations take that every action goes through.

Each costs a trip to the database while locks are held, so one more is a decision, not
an accident: a change that adds one raises its number here, and one that saves some
lowers it. `make bench ARGS=--profile` prints the statements with their senders."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reviews.executions import redeem, run
from reviews.tool_services.executors import EffectOutcome
from tests.conftest import Gate
from tests.factories import decide, propose, revise
from tests.reviews.executions.attempts import deployment, reported

STATEMENTS = {
    "propose": 8,
    "revise": 21,
    "decide": 8,
    "run": 9,
    "redeem": 7,
    "record": 4,
}
# One customer each: a second refund of the same day would need supervisors.
_customers = itertools.count(1)


@pytest.fixture
def count(gate: Gate) -> Callable[[Callable[[], Any]], int]:
    """`count(work)`: the statements of this work, once what is read a single time in a
    process has been read. Savepoints stand for the transactions of the product."""
    run.run_execution(approved(gate).executions.get().pk)

    def measure(work: Callable[[], Any]) -> int:
        with CaptureQueriesContext(connection) as caught:
            work()
        sent = [query["sql"] for query in caught.captured_queries]
        return sum(not sql.startswith(("SAVEPOINT", "RELEASE")) for sql in sent)

    return measure


def approved(gate: Gate) -> Any:
    proposal = propose(gate.agent, customer=f"C-{next(_customers)}")
    decide(proposal.request, gate.rita)
    return proposal


def test_no_statement_is_added(
    gate: Gate, count: Callable[[Callable[[], Any]], int]
) -> None:
    asked = propose(gate.agent, customer="C-8").request
    execution = approved(gate).executions.get()
    deploy, token = deployment(gate)
    found = {
        "propose": count(lambda: propose(gate.agent, customer="C-9")),
        "revise": count(lambda: revise(gate.agent, asked.proposal, customer="C-8")),
        "decide": count(lambda: decide(asked, gate.rita)),
        "run": count(lambda: run.run_execution(execution.pk)),
        "redeem": count(lambda: redeem.redeem_grant(token=token, agent="riley")),
        "record": count(
            lambda: reported(deploy, 1, EffectOutcome("succeeded", {"done": True}))
        ),
    }
    assert found == STATEMENTS

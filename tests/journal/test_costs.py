"""What a sweep costs does not grow with history: with 100,000 rows of the past in every
table that grows beside a few that wait, each statement touches a bounded number of
pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.db.models import Model
from pytest_django import DjangoDbBlocker

from agents import retention
from agents.models import Delivery, IdempotencyKey
from hitl.celery import SWEEPS, app
from journal import clock, restore_epochs, tasks
from journal.models import LogPosition, LogRecord, OutboxMessage
from journal.statements import format_statement
from reviews.executions import redeem, run
from reviews.models import Execution, MetricDay, Notice
from stats import rollups
from tests.agents.webhooks import deliveries
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.hitl.tasks.draining import drain
from tests.journal import history
from tests.reviews import states
from tests.reviews.executions.attempts import deployment

pytestmark = [pytest.mark.django_db, pytest.mark.proof]
WAITING = 20
MEASURED = ("SELECT", "DELETE", "UPDATE", "WITH", "INSERT")
# What writes beside the database, by what it asks of it.
INSTEAD: dict[str, Callable[[], Any]] = {
    "hitl.tasks.watch_epoch": restore_epochs.find_halt_reason,
    # The log from the last place on: the figures of a day read all rows of that day.
    "hitl.tasks.update_statistics": lambda: _mark_newest_day(),
}
AGO = "now() - interval '2 days'"


def _mark_newest_day() -> None:
    now, last = clock.now(), LogPosition.objects.latest("seq").seq
    MetricDay.objects.create(day=now.date(), due=False, through=last - WAITING)
    rollups.mark_changed_days(now=now)


@pytest.fixture(scope="module", autouse=True)
def vacuum_tables(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Dead rows of earlier tests are no history, and a statement touches them all until
    somebody vacuums."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("VACUUM")


@pytest.fixture
def past(gate: Gate, proof_n: Callable[..., int]) -> int:
    """So many of everything that is over, and none of it old enough to be forgotten."""
    n: int = proof_n(small=100_000, full=1_000_000)
    rows = [*_of_the_house(gate), *_of_requests(gate), *_of_agents(gate)]
    with history.past():
        for row, other in rows:
            history.copy(row, n, **other)
        history.place_records()
    return n


Copies = list[tuple[Model, dict[str, str]]]


def _of_requests(gate: Gate) -> Copies:
    expired, held, done = (
        states.expired(gate),
        states.held(gate),
        states.succeeded(gate),
    )
    drain("request.opened")
    free = {"holder_id": "null", "token": "''", "taken_at": "null", "until": "null"}
    own = {"proposal_id": "'p-' || n"}
    either = "CASE n & 1 WHEN 0 THEN 'succeeded' ELSE 'refused' END"
    ended = {"status": either, "finished_at": AGO, "audited_at": AGO, "due_at": AGO}
    # Each of a proposal of its own: of one for all the planner expects to join it soon.
    grant = {"grant_id": "'g-' || n", "idempotency_key": "'cs-' || n", **own}
    return [
        (done.proposal, {"id": "'p-' || n", "created_at": AGO}),
        (expired, {"id": "'r-' || n", "settled_at": AGO, **own}),
        (held, {"request_id": "'r-' || n", **free}),
        (
            done.grant,
            {"id": "'g-' || n", "revision_id": "-n", **own},
        ),
        (Execution.objects.get(pk=done.pk), {"id": "'x-' || n", **grant, **ended}),
        (
            Notice.objects.earliest("pk"),
            {"version": "n + 99", "sent_at": AGO, "due_at": AGO},
        ),
    ]


def _of_agents(gate: Gate) -> Copies:
    deliveries.register(gate.agent, "https://riley.example/hook", gate.owen)
    deliveries.rejected(gate, customer="C-9")
    deliveries.promised()
    finished = states.finished(gate)
    letter = {"id": "'d-' || n", "event": "'e-' || n", "status": "'delivered'"}
    return [
        (finished, {"name": "'old-' || n", "finished_at": AGO}),
        (
            Delivery.objects.earliest("pk"),
            {**letter, "ended_at": AGO, "busy_until": "null"},
        ),
        (
            IdempotencyKey.objects.earliest("pk"),
            {"key": "'k-' || n", "created_at": AGO},
        ),
    ]


def _of_the_house(gate: Gate) -> Copies:
    session = Session(session_key="s", expire_date=clock.now() + timedelta(days=9))
    session.save()
    return [
        (session, {"session_key": "'s-' || n"}),
        (states.closed_alarm(gate), {"subject": "'s-' || n"}),
        (OutboxMessage.objects.earliest("pk"), {"done_at": AGO, "held_until": "null"}),
        (LogRecord.objects.earliest("id"), {}),
    ]


def pages(work: Callable[[], Any]) -> dict[str, int]:
    """What each statement of this work touches, as PostgreSQL counts it: each runs once
    more before it runs, in a savepoint that is rolled back."""
    found: dict[str, int] = {}
    measuring = False

    def measure(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        nonlocal measuring
        if not (measuring or many) and sql.lstrip().startswith(MEASURED):
            measuring = True
            by_hand = context["cursor"].cursor is None
            write = format_statement if by_hand else compose
            text = write(sql, params)
            found[text] = touched(text)
            measuring = False
        return execute(sql, params, many, context)

    with connection.execute_wrapper(measure):
        work()
    return found


def compose(sql: str, params: Any) -> str:
    return str(connection.ops.compose_sql(sql, params))  # type: ignore[attr-defined]


def plan_of(sql: str) -> str:
    """For who reads that it was too dear."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql}")
        return "\n".join([sql, *(line for (line,) in cursor.fetchall())])


def touched(sql: str) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}")
        (found,) = cursor.fetchone()
        transaction.set_rollback(True)
    plan = found if isinstance(found, list) else json.loads(found)
    root = plan[0]["Plan"]
    return int(root["Shared Hit Blocks"]) + int(root["Shared Read Blocks"])


def test_what_sweeps_cost_is_flat_in_history(
    gate: Gate,
    past: int,
    broker: redis.Redis,
    record_proof: Callable[[str, str], None],
) -> None:
    limit = 1000  # of 8 KiB; nearly every table of the past has more
    for number in range(WAITING):
        request = propose(gate.agent, thread="t-2", customer=f"C-{number}").request
        decide(request, gate.rita)
    OutboxMessage.objects.filter(done_at=None).update(due_at="2020-01-01T00:00Z")
    app.loader.import_default_modules()
    work = {name: INSTEAD.get(name, app.tasks[name]) for name in SWEEPS}
    work |= actions(gate)
    found = [pages(one) for one in work.values()]
    dear = {sql: n for statements in found for sql, n in statements.items()}
    plans = [f"{n} pages: {plan_of(sql)}" for sql, n in dear.items() if n > limit]
    assert not plans, "\n".join(plans)
    record_proof(
        "T6",
        f"{past:,} rows of history in each of 13 tables: the dearest statement of"
        f" {len(SWEEPS)} sweeps, a proposal, a verdict, an execution and a redeem"
        f" touches {max(dear.values())} pages of 8 KiB (at most {limit})",
    )


def actions(gate: Gate) -> dict[str, Callable[[], Any]]:
    """What people and agents wait for, each beside the same past."""
    asked, granted = (
        propose(gate.agent, thread="acts", customer=name).request for name in "ab"
    )
    decide(granted, gate.rita)
    _, token = deployment(gate, thread="acts")
    return {
        "propose": lambda: propose(gate.agent, thread="acts", customer="c"),
        "decide": lambda: decide(asked, gate.rita),
        "run": lambda: run.run_execution(granted.proposal.executions.get().pk),
        "redeem": lambda: redeem.redeem_grant(token=token, agent="riley"),
    }


def test_what_is_old_is_forgotten_and_the_log_is_not(gate: Gate, settings: Any) -> None:
    request = propose(gate.agent).request
    OutboxMessage.objects.update(done_at="2020-01-01T00:00Z")
    kept = propose(gate.agent, thread="t-2").request
    records = LogRecord.objects.count()
    assert tasks.prune_outbox() > 0
    assert not OutboxMessage.objects.filter(subject=request.pk).exists()
    assert OutboxMessage.objects.filter(subject=kept.pk).exists()
    assert retention.delete_old_keys() == 0
    assert LogRecord.objects.count() == records

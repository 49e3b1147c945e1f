"""What a sweep costs does not grow with history: with 200,000 rows of the past beside a
few that wait, each touches a bounded number of pages, by its partial index."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents import retention as agents_retention
from journal import resending, tasks
from journal.models import LogRecord, OutboxMessage
from reviews import deadlines, retention
from reviews.models import Execution
from tests.conftest import Gate
from tests.factories import decide, propose

pytestmark = [pytest.mark.django_db, pytest.mark.proof]
WAITING = 20
MOST_PAGES = 1000  # of 8 KiB; tables of 200,000 rows have many thousands
PAST = """
INSERT INTO journal_outboxmessage
    (topic, task, subject, facts, created_at, due_at, attempts, done_at)
SELECT 'request.opened', 'reviews.tasks.mail_opened', 'r-' || n, '{{}}',
       now() - interval '2 days', now() - interval '2 days', 1,
       now() - interval '2 days'
FROM generate_series(1, {n}) AS n;
INSERT INTO agents_idempotencykey
    (agent_id, key, fingerprint, proposal, status, body, created_at)
SELECT {agent}, 'k-' || n, 'sha256:x', '', 201, '{{}}', now() - interval '9 days'
FROM generate_series(1, {n}) AS n;
INSERT INTO {execution} ({columns})
SELECT {values} FROM {execution} AS like_it, generate_series(1, {n}) AS n
WHERE like_it.id = '{pattern}';
ANALYZE journal_outboxmessage, agents_idempotencykey, {execution}
"""


@pytest.fixture
def history(gate: Gate, proof_n: Callable[..., int]) -> int:
    """So many promises kept, keys answered and effects done."""
    n = proof_n(small=200_000, full=1_000_000)
    request = propose(gate.agent).request
    decide(request, gate.rita)
    pattern = Execution.objects.get(proposal=request.proposal_id)
    table = Execution._meta.db_table
    other = {
        "id": "'x-' || n",
        "grant_id": "'g-' || n",
        "idempotency_key": "'hp-' || n",
        "status": "'succeeded'",
        "finished_at": "now() - interval '2 days'",
        "due_at": "now() - interval '2 days'",
        "result": "'\\x00'::bytea",
    }
    columns = [str(field.column) for field in Execution._meta.concrete_fields]
    fill = PAST.format(
        n=n,
        agent=gate.agent.pk,
        execution=table,
        columns=", ".join(columns),
        values=", ".join(other.get(name, f"like_it.{name}") for name in columns),
        pattern=pattern.pk,
    )
    with connection.cursor() as cursor:
        # Rows of a past that nothing points to: their keys and triggers are not asked.
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(fill)
        cursor.execute("SET LOCAL session_replication_role = origin")
    return n


def pages(work: Callable[[], Any]) -> dict[str, int]:
    """What each statement of this work touches, as PostgreSQL counts it."""
    with CaptureQueriesContext(
        connection,
    ) as caught:
        work()
    return {
        query["sql"]: touched(query["sql"])
        for query in caught.captured_queries
        if query["sql"].startswith(("SELECT", "DELETE", "UPDATE"))
    }


def touched(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}")
        (found,) = cursor.fetchone()
    plan = found if isinstance(found, list) else json.loads(found)
    root = plan[0]["Plan"]
    return int(root["Shared Hit Blocks"]) + int(root["Shared Read Blocks"])


def test_what_sweeps_cost_is_flat_in_history(
    gate: Gate, history: int, record_proof: Callable[[str, str], None]
) -> None:
    for number in range(WAITING):
        request = propose(gate.agent, customer=f"C-{number}").request
        decide(request, gate.rita)
    OutboxMessage.objects.filter(done_at=None).update(due_at="2020-01-01T00:00Z")
    work: dict[str, Callable[[], Any]] = {
        "outbox sweep": resending.sweep,
        "queued executions": lambda: deadlines.queued_executions(quiet=timedelta(0)),
        "lapsed executions": deadlines.lapsed_executions,
        "expiry": deadlines.expire_chunk,
        "recall windows": deadlines.close_recall_windows,
        "outbox prune": tasks.prune_outbox,
        "keys prune": agents_retention.forget_keys,
        "blobs prune": agents_retention.erase_blobs,
        "letters prune": agents_retention.forget_letters,
        "results prune": retention.erase_results,
        "sessions prune": retention.forget_sessions,
    }
    most = {name: max(pages(one).values(), default=0) for name, one in work.items()}
    assert all(found <= MOST_PAGES for found in most.values()), most
    record_proof(
        "T6",
        f"{history:,} rows of history: the dearest statement of {len(work)} sweeps"
        f" touches {max(most.values())} pages of 8 KiB (at most {MOST_PAGES})",
    )


def test_what_is_old_is_forgotten_and_the_log_is_not(gate: Gate, settings: Any) -> None:
    request = propose(gate.agent).request
    OutboxMessage.objects.update(done_at="2020-01-01T00:00Z")
    kept = propose(gate.agent, thread="t-2").request
    records = LogRecord.objects.count()
    assert tasks.prune_outbox() > 0
    assert not OutboxMessage.objects.filter(subject=request.pk).exists()
    assert OutboxMessage.objects.filter(subject=kept.pk).exists()
    assert agents_retention.forget_keys() == 0
    assert LogRecord.objects.count() == records

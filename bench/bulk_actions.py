"""Many finished actions in little time: copies of a real one, written by SQL.

Each copy takes the steps of a real action: its rows are inserted as the operations
insert them, and updated as often as the operations and the worker update them, each
step in a transaction of its own. The tables, their indexes and the log therefore get as
many rows, row versions and index entries as from real actions. `count_row_writes` shows
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

CHUNK = 1_000
_FIRST_ID = 2_000_000_000  # of copies, where other rows refer to the id
# Each table with its pattern's rows, and what the operations insert: `n` is the copy's
# number. What is not named here stays as in the pattern, under the ids of the copy.
INSERTS: Mapping[str, tuple[str, str]] = {
    "agents_thread": (
        "name = %(thread)s AND mod(n, 10) = 0",
        "'id', first_id + n / 10",
    ),
    "reviews_proposal": ("id = %(proposal)s", "'created_at', now()"),
    "reviews_revision": (
        "proposal_id = %(proposal)s",
        "'id', first_id + n, 'created_at', now()",
    ),
    "agents_checkpoint": (
        "proposal = %(proposal)s",
        """'id', nextval('agents_checkpoint_id_seq'), 'number', mod(n, 10) + 1,
        'thread_id', first_id + n / 10""",
    ),
    "agents_idempotencykey": (
        "proposal = %(proposal)s",
        """'id', nextval('agents_idempotencykey_id_seq'), 'key', 'bulk-' || n,
        'created_at', now()""",
    ),
    "reviews_approvalrequest": (
        "id = %(request)s",
        """'status', 'pending', 'settled_at', NULL, 'opened_at', now(),
        'repeat_key', md5('bulk' || n)::uuid,
        'expires_at', now() + interval '30 minutes'""",
    ),
    "reviews_requestversion": (
        "request_id = %(request)s",
        """'id', nextval('reviews_requestversion_id_seq'), 'revision_id', first_id + n,
        'created_at', now(), 'expires_at', now() + interval '30 minutes'""",
    ),
    "policies_observation": (
        "proposal = %(proposal)s",
        """'id', nextval('policies_observation_id_seq'), 'at', now(),
        'ran', false, 'ran_by', now() + interval '45 minutes'""",
    ),
    "reviews_searchentry": (
        "revision_id = %(revision)s",
        "'revision_id', first_id + n",
    ),
    "reviews_notice": (
        "request_id = %(request)s",
        """'id', nextval('reviews_notice_id_seq'), 'at', now(), 'due_at', now(),
        'sent_at', NULL""",
    ),
    "reviews_decision": (
        "request_id = %(request)s",
        "'id', nextval('reviews_decision_id_seq'), 'at', now()",
    ),
    "reviews_grant": (
        "id = %(grant)s",
        """'status', 'live', 'revision_id', first_id + n, 'issued_at', now(),
        'expires_at', now() + interval '15 minutes'""",
    ),
    "reviews_execution": (
        "id = %(execution)s",
        """'status', 'queued', 'fence', 0, 'attempts', 0, 'result', NULL,
        'result_shown', NULL, 'result_digest', '', 'claimed_at', NULL,
        'began_at', NULL, 'finished_at', NULL, 'due_at', now(), 'queued_at', now()""",
    ),
    "reviews_statereading": (
        "revision_id = %(revision)s",
        """'id', nextval('reviews_statereading_id_seq'), 'revision_id', first_id + n,
        'at', now()""",
    ),
    "journal_logrecord": (
        "proposal = %(proposal)s",
        """'id', nextval('journal_logrecord_id_seq'), 'at', now(),
        'xid', pg_current_xact_id()::text""",
    ),
    "journal_outboxmessage": (
        "subject IN (%(request)s, %(execution)s)",
        """'id', nextval('journal_outboxmessage_id_seq'), 'created_at', now(),
        'due_at', now() + interval '5 seconds', 'held_until', NULL, 'attempts', 0,
        'done_at', NULL""",
    ),
}
_INSERT = """
WITH pattern AS (SELECT to_jsonb(t)::text AS row FROM {table} AS t WHERE {pattern})
INSERT INTO {table}
SELECT copy.* FROM generate_series(%(first)s::int, %(last)s::int) AS n
CROSS JOIN (SELECT {first_id}::bigint AS first_id) AS ids
CROSS JOIN pattern
CROSS JOIN LATERAL jsonb_populate_record(NULL::{table},
    {renamed}::jsonb || jsonb_build_object({changes})) AS copy
"""
_PAYLOADS = """
INSERT INTO journal_logpayload (record_id, salt, values)
SELECT copy.id, payload.salt, payload.values
FROM journal_logpayload AS payload
JOIN journal_logrecord AS pattern ON pattern.id = payload.record_id
JOIN journal_logrecord AS copy ON copy.kind = pattern.kind
WHERE pattern.proposal = %(proposal)s
  AND copy.proposal IN (SELECT 'p-bulk' || n
                        FROM generate_series(%(first)s::int, %(last)s::int) AS n)
"""
_MESSAGES = """
UPDATE journal_outboxmessage SET {changes}
WHERE subject IN (SELECT kind || 'bulk' || n FROM unnest(ARRAY['r-', 'x-']) AS kind,
                  generate_series(%(first)s::int, %(last)s::int) AS n)
  AND done_at IS NULL
"""
# The updates of one action in their order. The rows are found by a key and its prefix.
UPDATES: tuple[tuple[str, str, str, str], ...] = (
    ("agents_idempotencykey", "proposal", "p-", "body = body"),
    ("agents_thread", "name", "t-", "wrapped_key = wrapped_key"),
    (
        "reviews_approvalrequest",
        "id",
        "r-",
        "status = 'authorized', settled_at = now()",
    ),
    ("reviews_grant", "id", "g-", "status = 'spent'"),
    (
        "reviews_execution",
        "id",
        "x-",
        "status = 'claimed', fence = 1, attempts = 1, claimed_at = now(),"
        " lease_until = now() + interval '1 minute'",
    ),
    ("reviews_execution", "id", "x-", "began_at = now()"),
    (
        "reviews_execution",
        "id",
        "x-",
        "status = 'succeeded', lease_until = NULL, finished_at = now(),"
        " result = %(result)s, result_digest = %(digest)s",
    ),
    ("policies_observation", "proposal", "p-", "ran = true, ran_by = now()"),
    # Beyond the reader's number of mails an hour they wait for one mail together.
    ("reviews_notice", "NOT digest AND request_id", "r-", "sent_at = now()"),
)
_UPDATE = """
UPDATE {table} SET {changes}
WHERE {key} IN (SELECT '{prefix}bulk' || n
                FROM generate_series(%(first)s::int, %(last)s::int) AS n)
"""
TABLES = (*INSERTS, "journal_logpayload")
_WRITES = """
SELECT coalesce(sum(n_tup_ins), 0), coalesce(sum(n_tup_upd), 0)
FROM pg_stat_user_tables WHERE relname = ANY (%s)
"""


@dataclass(frozen=True, slots=True)
class RowWrites:
    """Rows inserted and updated in the tables that an action writes."""

    inserted: float
    updated: float

    def per_action(self, before: RowWrites, actions: int) -> RowWrites:
        return RowWrites(
            (self.inserted - before.inserted) / actions,
            (self.updated - before.updated) / actions,
        )

    def __str__(self) -> str:
        return f"{self.inserted:.1f} rows inserted and {self.updated:.1f} updated"


def count_row_writes(connection: psycopg.Connection[Any]) -> RowWrites:
    """What PostgreSQL has counted. A session adds what it wrote when it is idle or
    ends."""
    counts = connection.execute(_WRITES, [list(TABLES)]).fetchone()
    assert counts is not None
    return RowWrites(float(counts[0]), float(counts[1]))


def load_pattern(connection: psycopg.Connection[Any], proposal: str) -> dict[str, Any]:
    """The ids of a finished action, by which its rows are found and renamed."""
    row = connection.execute(
        """
        SELECT request.id, permit.id, execution.id, revision.id, proposal.thread,
               '"' || proposal.agent || '"',
               execution.idempotency_key, execution.result, execution.result_digest,
               convert_from(revision.canonical, 'UTF8')::jsonb -> 'args' ->> 'order_id'
        FROM reviews_proposal AS proposal
        JOIN reviews_revision AS revision ON revision.proposal_id = proposal.id
        JOIN reviews_approvalrequest AS request ON request.proposal_id = proposal.id
        JOIN reviews_grant AS permit ON permit.proposal_id = proposal.id
        JOIN reviews_execution AS execution ON execution.proposal_id = proposal.id
        WHERE proposal.id = %s AND execution.status = 'succeeded'
        """,
        [proposal],
    ).fetchone()
    if row is None:
        raise LookupError(f"{proposal} is no finished action")
    names = (
        "request", "grant", "execution", "revision", "thread", "agent", "effect",
        "result", "digest", "order",
    )  # fmt: skip
    return {"proposal": proposal, **dict(zip(names, row, strict=True))}


def write_actions(
    connection: psycopg.Connection[Any],
    pattern: Mapping[str, Any],
    count: int,
    *,
    above: int = 0,
) -> Iterator[int]:
    """Write so many copies in chunks, numbered from `above`, and yield the number of
    the last of each chunk. The connection must be in autocommit: each statement is a
    transaction."""
    # Copies of rows that passed every check and trigger.
    connection.execute("SET session_replication_role = replica")
    end = above + count
    for first in range(above + 1, end + 1, CHUNK):
        last = min(first + CHUNK - 1, end)
        values = {**pattern, "first": first, "last": last}
        with connection.transaction():
            for table, (where, changes) in INSERTS.items():
                connection.execute(_build_insert(table, where, changes), values)
            connection.execute(_PAYLOADS, values)
        for changes in (
            "attempts = 1, held_until = now() + interval '1 minute',"
            " due_at = now() + interval '1 minute'",
            "done_at = now(), held_until = NULL",
        ):
            connection.execute(_MESSAGES.format(changes=changes), values)
        for table, key, prefix, changes in UPDATES:
            text = _UPDATE.format(table=table, key=key, prefix=prefix, changes=changes)
            connection.execute(text, values)
        yield last


def _build_insert(table: str, where: str, changes: str) -> str:
    """The pattern's rows as text, with the ids of the copy in place of its own."""
    renamed = "pattern.row"
    for name, text in (
        ("proposal", "'p-bulk' || n"),
        ("request", "'r-bulk' || n"),
        ("grant", "'g-bulk' || n"),
        ("execution", "'x-bulk' || n"),
        ("effect", "'cs-bulk' || n"),
        ("order", "'BULK' || n"),
        ("thread", "'t-bulk' || (n / 10) * 10"),
        # Agents of their own: the real ones would reach their cap of a minute.
        ("agent", "'\"bulk-' || mod(n, 64) || '\"'"),
    ):
        renamed = f"replace({renamed}, %({name})s, {text})"
    pattern, _, rest = where.partition(" AND mod")
    condition = f" WHERE mod{rest}" if rest else ""
    text = _INSERT.format(
        table=table,
        pattern=pattern,
        changes=changes,
        first_id=_FIRST_ID,
        renamed=f"({renamed})",
    )
    return text + condition

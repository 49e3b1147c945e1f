"""Many requests that wait, in the database, as copies of a few that were really asked.

A second database holds the same with far fewer, so that both are measured in turn, in
the same minute and by the same process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from django.conf import settings
from django.db import connection, connections

from reviews.models import ApprovalRequest, Proposal

from .product import ProductClient
from .report import print_text
from .seed import Seed

FEW, MANY = 1_000, 1_000_000
_PATTERNS = 16  # requests that were really asked; the others are copies
_SMALL = "bench_few"
# Each table with what differs in a copy; `n` is its number, `t` the row copied.
_COPIES = {
    "reviews_proposal": """
      'id', 'p-copy' || n, 'agent', 'agent-' || mod(n, 64),
      'thread', 'copy-' || n / 10""",
    "reviews_revision": "'id', 1000000 + n, 'proposal_id', 'p-copy' || n",
    "reviews_approvalrequest": """
      'id', 'r-copy' || n, 'proposal_id', 'p-copy' || n,
      'agent', 'agent-' || mod(n, 64),
      'repeat_key', md5('copy' || n)::uuid, 'rank', mod(n, 3) * 10 + 1,
      'risk', (ARRAY['critical', 'high', 'medium'])[mod(n, 3) + 1],
      'supervisors_only', mod(n, 4) = 0,
      'opened_at', now() - mod(n, 86400) * interval '1 second',
      'expires_at', now() + interval '3 hours' + mod(n, 864000) * interval '1 second',
      'expires_at_most', now() + interval '30 days'""",
    "reviews_requestversion": """
      'id', 1000000 + n, 'request_id', 'r-copy' || n, 'revision_id', 1000000 + n,
      'steps', jsonb_build_array(jsonb_build_object('required', 1, 'role',
        CASE WHEN mod(n, 4) = 0 THEN 'supervisor' ELSE 'reviewer' END))""",
    "journal_logrecord": """
      'id', 1000000000 + n, 'proposal', 'p-copy' || n, 'request', 'r-copy' || n""",
}
_OF_PATTERNS = "t.proposal_id = ANY (%(proposals)s)"
_PATTERN = {
    "reviews_proposal": "t.id = ANY (%(proposals)s)",
    "reviews_revision": _OF_PATTERNS,
    "reviews_approvalrequest": _OF_PATTERNS,
    "reviews_requestversion": """EXISTS (
      SELECT FROM reviews_approvalrequest AS r
      WHERE r.id = t.request_id AND r.proposal_id = ANY (%(proposals)s))""",
    "journal_logrecord": """
      t.kind = 'request.opened' AND t.proposal = ANY (%(proposals)s)""",
}
_COPY = """
INSERT INTO {table}
SELECT copy.* FROM
  (SELECT t, row_number() OVER () - 1 AS k, count(*) OVER () AS patterns
   FROM {table} AS t WHERE {pattern}) AS them
CROSS JOIN generate_series(1, %(count)s) AS n
CROSS JOIN LATERAL jsonb_populate_record(them.t, jsonb_build_object({changes})) AS copy
WHERE mod(n, them.patterns) = them.k
"""


@dataclass(frozen=True, slots=True)
class Databases:
    """Two databases of the same server; `asked` is a request that is in both."""

    few: str
    many: str
    asked: str

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        """Django's connection goes to this one."""
        connections["default"].close()
        before = connection.settings_dict["NAME"]
        connection.settings_dict["NAME"] = name
        try:
            yield
        finally:
            connections["default"].close()
            connection.settings_dict["NAME"] = before


def create_databases(seed: Seed, count: int = MANY) -> Databases:
    """Ask a few, copy the database, and fill both."""
    client = ProductClient(seed, 0)
    for _ in range(_PATTERNS):
        client.propose()
    asked = ApprovalRequest.objects.filter(status="pending").order_by("-opened_at")
    proposals = list(asked.values_list("proposal_id", flat=True)[:_PATTERNS])
    many = str(connection.settings_dict["NAME"])
    connections.close_all()
    with _connect_server() as server:
        server.execute(f'CREATE DATABASE {_SMALL} TEMPLATE "{many}"')
    for name, rows in ((_SMALL, FEW), (many, count)):
        print_text(f"copying {rows} waiting requests into {name}")
        _copy_rows(name, proposals, rows - _PATTERNS)
    request = Proposal.objects.get(pk=proposals[0]).request
    return Databases(_SMALL, many, request.pk)


def _connect_server() -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        settings.HOLDPOINT.database_url, dbname="postgres", autocommit=True
    )


def _copy_rows(name: str, proposals: list[str], count: int) -> None:
    with psycopg.connect(
        settings.HOLDPOINT.database_url, dbname=name, autocommit=True
    ) as copier:
        # Copies of rows that passed every check and trigger.
        copier.execute("SET session_replication_role = replica")
        for table, changes in _COPIES.items():
            sql = _COPY.format(table=table, pattern=_PATTERN[table], changes=changes)
            copier.execute(sql, {"proposals": proposals, "count": count})
        copier.execute("VACUUM ANALYZE")

"""Recognises a pooler that gives each transaction another session.

Counterseal keeps settings, prepared statements, advisory locks and LISTEN in its
sessions. Behind such a pooler most calls fail, though single questions succeed.
"""

from __future__ import annotations

import psycopg

SESSION = "SELECT pg_backend_pid()"
REPAIR = (
    "DATABASE_URL leads to a pooler that gives each transaction another session of"
    " PostgreSQL. Counterseal keeps settings and locks in its sessions: set pool_mode ="
    " session, or connect to PostgreSQL itself."
)


def changes_sessions(url: str, connect_timeout: int) -> bool:
    """Whether one connection is served by several sessions: a second connection takes
    the session of the first as soon as the first is idle. Raises psycopg.Error when the
    database cannot be asked."""
    with (
        psycopg.connect(url, connect_timeout=connect_timeout, autocommit=True) as first,
        psycopg.connect(url, connect_timeout=connect_timeout) as second,
    ):
        before = first.execute(SESSION).fetchone()
        second.execute(SESSION)  # begins a transaction, which keeps its session
        return first.execute(SESSION).fetchone() != before

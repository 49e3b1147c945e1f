"""Records when each sweep last completed, by the database's clock. A sweep that hangs
cannot report that itself, so another process compares the ages."""

from __future__ import annotations

from django.db import connection

_BEAT = """
INSERT INTO journal_heartbeat (name, at) VALUES (%s, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET at = excluded.at
"""
_AGES = "SELECT name, extract(epoch FROM clock_timestamp() - at) FROM journal_heartbeat"


def record_heartbeat(name: str) -> None:
    """Record that this sweep has just completed."""
    with connection.cursor() as cursor:
        cursor.execute(_BEAT, [name])


def compute_ages() -> dict[str, float]:
    """Seconds since each sweep last completed, for those that ever did."""
    with connection.cursor() as cursor:
        cursor.execute(_AGES)
        return {name: float(age) for name, age in cursor.fetchall()}

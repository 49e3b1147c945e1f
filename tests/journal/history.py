"""A long past: rows as operations left them, copied many times over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.db.models import AutoField, Model


@contextmanager
def past() -> Iterator[None]:
    """What is copied here points to nothing: its keys and triggers are not asked. The
    tables are counted anew afterwards."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        yield
        cursor.execute("SET LOCAL session_replication_role = origin")
        cursor.execute("ANALYZE")


def copy(row: Model, times: int, **other: str) -> None:
    """This row so many times more. `other` gives columns as SQL, where `n` counts from
    one; a serial key counts on by itself."""
    meta = row._meta
    fields = [one for one in meta.concrete_fields if not isinstance(one, AutoField)]
    columns = [str(one.column) for one in fields]
    values = [other.get(name, f'like_it."{name}"') for name in columns]
    assert set(other) <= set(columns), set(other) - set(columns)
    named = ", ".join(f'"{name}"' for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {meta.db_table} ({named})"
            f" SELECT {', '.join(values)} FROM {meta.db_table} AS like_it,"
            " generate_series(1, %s) AS n"
            f" WHERE like_it.{meta.pk.column}::text = %s",
            [times, str(row.pk)],
        )


def place_records() -> None:
    """Give every record its place, as the sequencer does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO journal_logposition (seq, record_id, leaf_hash)"
            " SELECT coalesce((SELECT max(seq) FROM journal_logposition), -1)"
            "        + row_number() OVER (ORDER BY id), id, sha256(leaf)"
            " FROM journal_logrecord AS r WHERE NOT EXISTS"
            " (SELECT 1 FROM journal_logposition AS p WHERE p.record_id = r.id)"
        )

"""Rows by hand: the ORM takes twice as long, and the log and the outbox are on the path
of everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

# The driver looks through a statement anew for each of its placeholders once there are
# many: from here on a column is one array, before it a row is cheaper as it is.
_MANY = 20


def insert(
    table: str,
    columns: Mapping[str, str],
    rows: Sequence[Sequence[Any]],
    *,
    returning: str,
    same: Mapping[str, str] | None = None,
) -> list[tuple[Any, ...]]:
    """What the rows return, in their order, by one INSERT. `columns` gives the type of
    each value of a row; `same` gives what all rows have, as SQL. All names and
    expressions are ours, never anybody's text. Caller holds a transaction."""
    same = same or {}
    names = ", ".join(f'"{name}"' for name in (*columns, *same))
    source, given = (_values if len(rows) < _MANY else _arrays)(columns, rows, same)
    sql = f"INSERT INTO {table} ({names}) {source} RETURNING {returning}"
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        return list(cursor.fetchall())


def _values(
    columns: Mapping[str, str], rows: Sequence[Sequence[Any]], same: Mapping[str, str]
) -> tuple[str, list[Any]]:
    row = ", ".join([*["%s"] * len(columns), *same.values()])
    values = ", ".join([f"({row})"] * len(rows))
    return f"VALUES {values}", [value for row in rows for value in row]


def _arrays(
    columns: Mapping[str, str], rows: Sequence[Sequence[Any]], same: Mapping[str, str]
) -> tuple[str, list[Any]]:
    arrays = ", ".join(f"%s::{kind}[]" for kind in columns.values())
    picked = ", ".join(["given.*", *same.values()])
    source = f"SELECT {picked} FROM unnest({arrays}) AS given"  # noqa: S608
    return source, [list(column) for column in zip(*rows, strict=True)]

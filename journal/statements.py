"""SQL statements that are written by hand: PostgreSQL prepares them once a connection
and gets their parameters apart from the text.

The ORM compiles a query on every run, and the driver writes the parameters into the
text, so PostgreSQL parses and plans each run again. For the statements of an action,
this costs more than running them.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorDebugWrapper, CursorWrapper
from psycopg import RawCursor
from psycopg.sql import Literal

Row = tuple[Any, ...]
PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_NUMBERED = re.compile(r"\$(\d+)")


class Statement:
    """One SQL statement with named placeholders, `%(name)s`.

    Its text never depends on input, and a repeated name is one parameter. Where the
    text does not show a parameter's type, it needs a cast.
    """

    def __init__(self, text: str) -> None:
        self.names = tuple(dict.fromkeys(PLACEHOLDER.findall(text)))
        numbers = {name: f"${at}" for at, name in enumerate(self.names, start=1)}
        self.text = PLACEHOLDER.sub(lambda found: numbers[found[1]], text)

    def fetch_all(self, **values: Any) -> list[Row]:
        """Run it and return all rows."""
        rows: list[Row] = run_statement(self.text, self._order(values)).fetchall()
        return rows

    def fetch_first(self, **values: Any) -> Row | None:
        """Run it and return the first row; None without one."""
        row: Row | None = run_statement(self.text, self._order(values)).fetchone()
        return row

    def fetch_one(self, **values: Any) -> Row:
        """Run a statement that always returns a row, and return it. Raises LookupError
        without one."""
        row = self.fetch_first(**values)
        if row is None:
            raise LookupError(f"no row from: {self.text}")
        return row

    def execute(self, **values: Any) -> int:
        """Run it and return the number of rows that it found or changed."""
        count: int = run_statement(self.text, self._order(values)).rowcount
        return count

    def _order(self, values: dict[str, Any]) -> list[Any]:
        return [values[name] for name in self.names]


def run_statement(text: str, values: list[Any]) -> RawCursor[Row]:
    """Run a statement with placeholders `$1`, `$2`, … on this thread's connection, in
    its transaction if it has one. Return the driver's cursor with the result."""
    connection = connections[DEFAULT_DB_ALIAS]
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    cursor = RawCursor(connection.connection)
    if connection.execute_wrappers or connection.force_debug_cursor:
        _run_watched(connection, cursor, text, values)
    else:
        _run(connection, cursor, text, values)
    return cursor


def _run(
    connection: BaseDatabaseWrapper, cursor: RawCursor[Row], text: str, values: Any
) -> None:
    connection.validate_no_broken_transaction()
    try:
        cursor.execute(text, values, prepare=True)
    except psycopg.Error:
        with connection.wrap_database_errors:
            raise


def _run_watched(
    connection: BaseDatabaseWrapper, cursor: RawCursor[Row], text: str, values: Any
) -> None:
    """Through the wrappers by which Django lets others see a statement."""
    wrapper = _LoggedCursor if connection.force_debug_cursor else _WatchedCursor
    wrapper(cursor, connection).execute(text, values)


class _WatchedCursor(CursorWrapper):
    def execute(self, sql: Any, params: Any = None) -> Any:
        return self._execute_with_wrappers(
            sql, params, many=False, executor=self._execute
        )

    def _execute(self, sql: str, params: Any, *ignored: Any) -> None:
        _run(self.db, self.cursor, sql, params)


class _LoggedCursor(_WatchedCursor, CursorDebugWrapper):
    """Adds to `connection.queries`, which tests read."""

    def execute(self, sql: Any, params: Any = None) -> Any:
        with self.debug_sql(format_statement(sql, params)):
            return super().execute(sql, params)


def format_statement(text: str, values: list[Any]) -> str:
    """The text of a statement with its values in place of `$1`, `$2`, …, for people who
    read or EXPLAIN it."""
    connection = connections[DEFAULT_DB_ALIAS].connection
    return _NUMBERED.sub(
        lambda found: Literal(values[int(found[1]) - 1]).as_string(connection), text
    )

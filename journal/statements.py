"""SQL statements that are written by hand: PostgreSQL prepares them once a connection
and gets their parameters apart from the text.

The ORM compiles a query on every run, and the driver writes the parameters into the
text, so PostgreSQL parses and plans each run again. For the statements of an action,
this costs more than running them.
"""

from __future__ import annotations

import re
from typing import Any

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


def run_statement(text: str, values: list[Any]) -> CursorWrapper:
    """Run a statement with placeholders `$1`, `$2`, … on this thread's connection, in
    its transaction if it has one. Return the cursor with the result."""
    cursor = _open_cursor(connections[DEFAULT_DB_ALIAS])
    cursor.execute(text, values)
    return cursor


def _open_cursor(connection: BaseDatabaseWrapper) -> CursorWrapper:
    """A cursor of the driver that binds on the server, in the wrapper by which Django
    counts statements and translates errors."""
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    raw = RawCursor(connection.connection)
    wrapper = _LoggedCursor if connection.queries_logged else _PreparedCursor
    return wrapper(raw, connection)


class _PreparedCursor(CursorWrapper):
    def execute(self, sql: Any, params: Any = None) -> Any:
        if not self.db.execute_wrappers:
            return self._execute(sql, params)
        return self._execute_with_wrappers(
            sql, params, many=False, executor=self._execute
        )

    def _execute(self, sql: str, params: Any, *ignored: Any) -> Any:
        self.db.validate_no_broken_transaction()
        with self.db.wrap_database_errors:
            return self.cursor.execute(sql, params, prepare=True)


class _LoggedCursor(_PreparedCursor, CursorDebugWrapper):
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

"""SQL statements that are written by hand: PostgreSQL prepares them once a connection
and gets their parameters apart from the text.

The ORM compiles a query on every run, and the driver writes the parameters into the
text, so PostgreSQL parses and plans each run again. For the statements of an action,
this costs more than running them.
"""

from __future__ import annotations

import itertools
import re
import threading
from dataclasses import dataclass
from typing import Any, cast

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorDebugWrapper, CursorWrapper
from psycopg import Connection
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import DataError, FeatureNotSupported, error_from_result
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.sql import Literal
from psycopg.types.datetime import TimestamptzLoader

Row = tuple[Any, ...]
_PreparedKey = tuple[str, tuple[int, ...]]  # the text, and the types of its parameters
PREPARED_MAX = 100  # statements that a connection keeps
PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_NUMBERED = re.compile(r"\$(\d+)")
_NUMBERS = itertools.count()  # of prepared statements, so that no name comes twice


class Statement:
    """One SQL statement with named placeholders, `%(name)s`.

    Its text never depends on input, and a repeated name is one parameter. Where the
    text does not show a parameter's type, it needs a cast.
    """

    def __init__(self, text: str) -> None:
        self.names = tuple(dict.fromkeys(PLACEHOLDER.findall(text)))
        numbers = {name: f"${at}" for at, name in enumerate(self.names, start=1)}
        self.text = PLACEHOLDER.sub(lambda match: numbers[match[1]], text)

    def fetch_all(self, **values: Any) -> list[Row]:
        """Run it and return all rows."""
        return run_statement(self.text, self._order(values)).rows

    def fetch_first(self, **values: Any) -> Row | None:
        """Run it and return the first row; None without one."""
        rows = run_statement(self.text, self._order(values)).rows
        return rows[0] if rows else None

    def fetch_one(self, **values: Any) -> Row:
        """Run a statement that always returns a row, and return it. Raises LookupError
        without one."""
        row = self.fetch_first(**values)
        if row is None:
            raise LookupError(f"no row from: {self.text}")
        return row

    def execute(self, **values: Any) -> int:
        """Run it and return the number of rows that it found or changed."""
        return run_statement(self.text, self._order(values)).count

    def _order(self, values: dict[str, Any]) -> list[Any]:
        return [values[name] for name in self.names]


@dataclass(frozen=True, slots=True)
class Result:
    """What a statement returned, and the number of rows that it found or changed."""

    rows: list[Row]
    count: int


def run_statement(text: str, values: list[Any]) -> Result:
    """Run a statement with placeholders `$1`, `$2`, … on this thread's connection, in
    its transaction if it has one."""
    connection = cast(Any, connections[DEFAULT_DB_ALIAS])
    if connection.connection is None or not connection.health_check_done:
        connection.close_if_health_check_failed()
        connection.ensure_connection()
    if connection.execute_wrappers or connection.force_debug_cursor:
        return _run_watched(connection, text, values)
    return _run(connection, text, values)


def _run(connection: BaseDatabaseWrapper, text: str, values: list[Any]) -> Result:
    connection.validate_no_broken_transaction()
    try:
        return _find_prepared(connection.connection).run(text, values)
    except psycopg.Error:
        with connection.wrap_database_errors:
            raise


class _Current(threading.local):
    prepared: _PreparedStatements | None = None


_current = _Current()


def _find_prepared(connection: Connection[Any]) -> _PreparedStatements:
    """The prepared statements of this thread's connection."""
    prepared = _current.prepared
    if prepared is None or prepared.connection is not connection:
        prepared = _current.prepared = _PreparedStatements(connection)
    return prepared


class _PreparedStatements:
    """The prepared statements of one connection.

    It calls libpq as the driver does, but without a cursor for each statement and
    without the driver's event loop, which together take longer than the call.
    """

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection
        context = connection.cursor()
        # Django's own loader parses in Python. The connection's time zone is UTC.
        context.adapters.register_loader("timestamptz", TimestamptzLoader)
        self._adapter = Transformer(context)
        # The connection's own loader also reads times that Python does not have.
        self._slow_adapter = Transformer(connection.cursor())
        self._names: dict[_PreparedKey, bytes] = {}

    def run(self, text: str, values: list[Any]) -> Result:
        """Run a statement, and prepare it first if that has not been done. Begins a
        transaction where the driver would. Raises psycopg.Error."""
        with self.connection.lock:
            self._begin()
            adapter = self._adapter
            given = adapter.dump_sequence(values, [PyFormat.AUTO] * len(values))
            key = (text, adapter.types or ())
            name = self._prepare(key)
            server = self.connection.pgconn
            # Its type forgets that a parameter can be NULL.
            sent = server.exec_prepared(name, cast(Any, given), adapter.formats)
            try:
                result = self._check(sent)
            except FeatureNotSupported:
                # A migration changed the type of a column that it returns. PostgreSQL
                # refuses the prepared statement from then on.
                del self._names[key]
                raise
            if result.status != ExecStatus.TUPLES_OK:
                return Result([], result.command_tuples or 0)
            return Result(self._load_rows(result), result.ntuples)

    def _load_rows(self, result: PGresult) -> list[Any]:
        adapter, count = self._adapter, result.ntuples
        adapter.set_pgresult(result)
        try:
            return adapter.load_rows(0, count, tuple)
        except DataError:
            self._slow_adapter.set_pgresult(result)
            return self._slow_adapter.load_rows(0, count, tuple)

    def _begin(self) -> None:
        connection = self.connection
        if connection.autocommit:
            return
        if connection.pgconn.transaction_status == TransactionStatus.IDLE:
            self._check(connection.pgconn.exec_(b"BEGIN"))

    def _prepare(self, key: _PreparedKey) -> bytes:
        if key in self._names:
            name = self._names[key] = self._names.pop(key)  # it is the newest now
            return name
        server = self.connection.pgconn
        if len(self._names) == PREPARED_MAX:
            oldest = self._names.pop(next(iter(self._names)))
            self._check(server.exec_(b"DEALLOCATE " + oldest))
        name = b"statement_%d" % next(_NUMBERS)
        text, types = key
        self._check(server.prepare(name, text.encode(), types))
        self._names[key] = name
        return name

    def _check(self, result: PGresult) -> PGresult:
        """Raises OperationalError when the connection is lost, otherwise the error that
        the server reported."""
        if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            return result
        if self.connection.closed:
            raise psycopg.OperationalError(result.get_error_message())
        raise error_from_result(result)


def _run_watched(
    connection: BaseDatabaseWrapper, text: str, values: list[Any]
) -> Result:
    """Through the wrappers by which Django lets others see a statement."""
    kind = _LoggedStatement if connection.force_debug_cursor else _WatchedStatement
    watched = kind(None, connection)
    watched.execute(text, values)
    return watched.result


class _WatchedStatement(CursorWrapper):
    """Django's wrapper without a cursor of the driver in it."""

    result: Result

    def execute(self, sql: Any, params: Any = None) -> Any:
        return self._execute_with_wrappers(
            sql, params, many=False, executor=self._execute
        )

    def _execute(self, sql: str, params: Any, *ignored: Any) -> None:
        self.result = _run(self.db, sql, params)


class _LoggedStatement(_WatchedStatement, CursorDebugWrapper):
    """Adds to `connection.queries`, which tests read."""

    def execute(self, sql: Any, params: Any = None) -> Any:
        with self.debug_sql(format_statement(sql, params)):
            return super().execute(sql, params)


def format_statement(text: str, values: list[Any]) -> str:
    """The text of a statement with its values in place of `$1`, `$2`, …, for people who
    read or EXPLAIN it."""
    connection = connections[DEFAULT_DB_ALIAS].connection
    return _NUMBERED.sub(
        lambda match: Literal(values[int(match[1]) - 1]).as_string(connection), text
    )

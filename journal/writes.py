"""Inserts and guarded updates without the ORM, and the unit of work that sends many of
them as one statement.

Inside `unit_of_work` the writes of a transaction are collected. They are sent at its
end, or before the next other statement, so that a transaction always reads what it
wrote. An operation that reads first and then writes sends one statement for all rows.

The rows of a table travel as one JSON parameter. The text of a statement then depends
only on the tables and columns that it writes, and PostgreSQL prepares it once.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cache, lru_cache, partial
from typing import Any, cast
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.models.expressions import DatabaseDefault

from . import transactions
from .errors import Conflict
from .statements import PLACEHOLDER, Statement, run_statement

RowKey = tuple[str, Any]  # a table, and a key of the rows that a write changes
ResultHandler = Callable[[Any], None]
Columns = tuple[tuple[str, str], ...]  # pairs of a column and its SQL type
Parts = tuple[tuple[str, str], ...]  # pairs of a name and a common table expression


@dataclass(frozen=True, slots=True)
class Guard:
    """A further condition of an update.

    `same` names columns that still have the values of the row in hand. `condition` is
    SQL about the row in the table, which it calls `stored`; it becomes part of the
    text, so it must never come from input.
    """

    same: tuple[str, ...] = ()
    condition: str = ""


NO_GUARD = Guard()
_NEXT_KEYS = Statement("""
SELECT nextval(pg_get_serial_sequence(%(table)s, %(column)s)::regclass)
FROM generate_series(1, %(count)s)
""")


def _ignore(value: Any) -> None:
    """What a write returns, where nobody needs it."""


@dataclass(slots=True)
class _Write:
    """One of the writes of a statement. `parts` are its common table expressions by
    name, with placeholders `%(name)s` for `values`. `result` is an SQL expression over
    the last of them, and `on_result` gets its value.

    An insert keeps its rows in `rows` until it is sent, so that more can be added.
    """

    parts: Parts
    values: dict[str, Any]
    result: str
    on_result: ResultHandler
    rows: list[Mapping[str, Any]] | None = None


@dataclass(slots=True)
class _UnitOfWork:
    """The writes collected so far, in their order, and the rows that they change."""

    writes: list[_Write] = field(default_factory=list)
    row_keys: set[RowKey] = field(default_factory=set)
    is_sending: bool = False

    def add_write(self, write: _Write, row_keys: Iterable[RowKey]) -> None:
        """Collect a write. A statement can change a row only once, so an earlier write
        of one of these rows is sent first."""
        changed = set(row_keys)
        if not self.row_keys.isdisjoint(changed) or self._has_names(write):
            self.send_all()
        self.row_keys |= changed
        if not self._merge_rows(write):
            self.writes.append(write)

    def _has_names(self, write: _Write) -> bool:
        """Whether a write that it cannot be merged with has parts of the same names."""
        if write.rows is not None:
            return False
        taken = {name for earlier in self.writes for name, _ in earlier.parts if name}
        return any(name in taken for name, _ in write.parts)

    def _merge_rows(self, write: _Write) -> bool:
        """Add the rows of an insert to an earlier one of the same form, if any."""
        if write.rows is None:
            return False
        for earlier in self.writes:
            if earlier.rows is not None and earlier.parts == write.parts:
                earlier.on_result = partial(
                    _split_keys, len(earlier.rows), earlier.on_result, write.on_result
                )
                earlier.rows = [*earlier.rows, *write.rows]
                return True
        return False

    def send_all(self) -> None:
        """Send what is collected as one statement."""
        writes = self.writes
        self.writes, self.row_keys = [], set()
        if writes:
            self.is_sending = True
            try:
                _send_writes(writes)
            finally:
                self.is_sending = False

    def send_before_statement(
        self,
        execute: Callable[..., Any],
        sql: str,
        params: Any,
        many: bool,
        context: Any,
    ) -> Any:
        """Send what is collected before another statement runs; a wrapper of Django's
        `execute`."""
        if not self.is_sending:
            self.send_all()
        return execute(sql, params, many, context)


def _split_keys(
    count: int, earlier: ResultHandler, later: ResultHandler, keys: Sequence[Any]
) -> None:
    """Give the keys of merged inserts to both: the first `count` to the earlier one."""
    earlier(keys[:count])
    later(keys[count:])


class _Current(threading.local):
    unit: _UnitOfWork | None = None


_current = _Current()


@contextmanager
def unit_of_work() -> Iterator[None]:
    """Collect the writes of this block, and send them as one statement when it ends.

    A guarded update that does not find its row raises Conflict when it is sent: at the
    end of the block, or at the next other statement. Caller holds a transaction. A
    block within another one is part of it.
    """
    transactions.require_transaction("A unit of work")
    if _current.unit is not None:
        yield
        return
    unit = _current.unit = _UnitOfWork()
    try:
        with connections[DEFAULT_DB_ALIAS].execute_wrapper(unit.send_before_statement):
            yield
            unit.send_all()
    finally:
        _current.unit = None


def send_pending() -> None:
    """Send the writes of a unit of work now: what follows needs a key of theirs."""
    if _current.unit is not None:
        _current.unit.send_all()


def insert_rows(rows: Sequence[models.Model]) -> None:
    """Insert new rows of one model with one INSERT. They have their primary keys once
    it is sent. Caller holds a transaction."""
    if not rows:
        return
    model, columns = type(rows[0]), _list_columns(rows)
    key = model._meta.pk.column
    write = _Write(
        (("", _build_insert_text(model._meta.db_table, columns, key)),),
        {},
        f"array_agg({key})",
        partial(_mark_stored, rows),
        _read_columns(rows, [name for name, _ in columns]),
    )
    _add_write(write, [(model._meta.db_table, row.pk) for row in rows if row.pk])


def draw_keys(model: type[models.Model], count: int = 1) -> list[int]:
    """The next primary keys of a model whose keys the database numbers, for rows that
    others of the same unit of work refer to."""
    meta = model._meta
    rows = _NEXT_KEYS.fetch_all(table=meta.db_table, column=meta.pk.column, count=count)
    return [key for (key,) in rows]


def insert_values(
    parts: Parts,
    rows: Sequence[Mapping[str, Any]],
    *,
    key: str,
    on_result: ResultHandler = _ignore,
) -> None:
    """Insert rows with hand-written common table expressions. They read the rows from
    `%(rows)s`, a JSON list; the last one returns a column `key`. `on_result` gets the
    list of its values, in the order of the rows. Caller holds a transaction."""
    _add_write(_Write(parts, {}, f"array_agg({key})", on_result, list(rows)))


def update_rows(
    rows: Sequence[models.Model],
    changes: Mapping[str, Any],
    *,
    source: str,
    guard: Guard = NO_GUARD,
) -> None:
    """Set the same columns of rows that have the status `source`; the Python objects
    stay as they are. Raises Conflict, when the statement is sent, unless every row
    matches. Caller holds a transaction."""
    meta, many = rows[0]._meta, len(rows) > 1
    changed = dict(_resolve_column(rows[0], *item) for item in changes.items())
    known = (meta.pk.attname, *guard.same)
    compared = _read_columns(rows, known)
    text = _build_update_text(
        type(rows[0]), known, tuple(changed), guard.condition, many
    )
    write = _Write(
        (("", text),),
        {
            "known": _to_json(compared if many else compared[0]),
            "changed": _to_json(changed),
            "source": source,
        },
        "count(*)",
        partial(_check_count, len(rows)),
    )
    _add_write(write, [(meta.db_table, row.pk) for row in rows])


def format_rows(rows: Sequence[models.Model]) -> str:
    """New rows of one model as JSON, for a hand-written statement."""
    columns = _list_columns(rows) if rows else ()
    return _to_json(_read_columns(rows, [name for name, _ in columns]))


def _read_columns(
    rows: Sequence[models.Model], names: Iterable[str]
) -> list[Mapping[str, Any]]:
    return [{name: getattr(row, name) for name in names} for row in rows]


def _check_count(expected: int, count: int) -> None:
    if count != expected:  # guard: as-read
        raise Conflict


def execute_write(
    parts: Parts, values: Mapping[str, Any], *, row_keys: Iterable[RowKey] = ()
) -> None:
    """Run hand-written common table expressions that change rows, as part of the unit
    of work if there is one. The last one has RETURNING. `row_keys` names the rows that
    it changes and that another write of the unit may change as well. Caller holds a
    transaction."""
    _add_write(_Write(parts, dict(values), "count(*)", _ignore), row_keys)


def _add_write(write: _Write, row_keys: Iterable[RowKey] = ()) -> None:
    if _current.unit is None:
        _send_writes([write])
    else:
        _current.unit.add_write(write, row_keys)


def _send_writes(writes: Sequence[_Write]) -> None:
    for write in writes:
        if write.rows is not None:
            write.values = {"rows": _to_json(write.rows)}
    text, names = _compose_statement(
        tuple((write.parts, write.result) for write in writes)
    )
    given = [writes[at].values[name] for at, name in names]
    (values,) = run_statement(text, given).rows
    for write, value in zip(writes, values, strict=True):
        write.on_result(value)


@lru_cache(maxsize=512)
def _compose_statement(
    shape: tuple[tuple[Parts, str], ...],
) -> tuple[str, list[tuple[int, str]]]:
    """The text of a statement, and for each parameter its write and its name there."""
    given: list[tuple[int, str]] = []
    parts: list[str] = []
    results: list[str] = []
    for at, (own, result) in enumerate(shape):
        for name, text in own:
            numbered = _number_parameters(text, at, given)
            parts.append(f"{name or f'write_{at}'} AS ({numbered})")
        results.append(f"(SELECT {result} FROM {own[-1][0] or f'write_{at}'})")  # noqa: S608
    return f"WITH {', '.join(parts)} SELECT {', '.join(results)}", given


def _number_parameters(text: str, at: int, given: list[tuple[int, str]]) -> str:
    def number_one(match: re.Match[str]) -> str:
        named = (at, match[1])
        if named not in given:
            given.append(named)
        return f"${given.index(named) + 1}"

    return PLACEHOLDER.sub(number_one, text)


@cache
def _build_insert_text(table: str, columns: Columns, key: str) -> str:
    names = ", ".join(f'"{name}"' for name, _ in columns)
    types = ", ".join(f'"{name}" {kind}' for name, kind in columns)
    return (
        f'INSERT INTO "{table}" ({names}) SELECT {names}'  # noqa: S608 names of columns
        f" FROM jsonb_to_recordset(%(rows)s::jsonb) AS given ({types}) RETURNING {key}"
    )


@cache
def _build_update_text(
    model: type[models.Model],
    known: tuple[str, ...],
    changed: tuple[str, ...],
    condition: str,
    many: bool,
) -> str:
    """The status is a parameter on purpose. A constant would let PostgreSQL choose the
    partial index of that status, whose dead entries it reads again in every update
    while an older transaction is open."""
    types = _describe_columns(model)
    sets = ", ".join(f'"{name}" = changed."{name}"' for name in changed)
    wheres = [f'stored."{name}" = known."{name}"' for name in known]
    wheres += ["stored.status = %(source)s", *([condition] if condition else [])]
    of_known = ", ".join(f'"{name}" {types[name]}' for name in known)
    of_changed = ", ".join(f'"{name}" {types[name]}' for name in changed)
    return (
        f'UPDATE "{model._meta.db_table}" AS stored SET {sets}'  # noqa: S608 as above
        f" FROM jsonb_to_record{'set' if many else ''}(%(known)s::jsonb)"
        f" AS known ({of_known}),"
        f" jsonb_to_record(%(changed)s::jsonb) AS changed ({of_changed})"
        f" WHERE {' AND '.join(wheres)} RETURNING 1"
    )


@cache
def _describe_columns(model: type[models.Model]) -> Mapping[str, str]:
    """The SQL type of each column of a model. Its fields are named like its columns."""
    connection = connections[DEFAULT_DB_ALIAS]
    return {
        str(f.column): str(
            f.rel_db_type(connection) if f.is_relation else f.db_type(connection)
        )
        for f in model._meta.concrete_fields
    }


def _list_columns(rows: Sequence[models.Model]) -> Columns:
    """The columns that an INSERT of these rows names, with their types: all but those
    whose value the database makes."""
    first, model = rows[0], type(rows[0])
    made = [
        name
        for name in _list_defaulted_columns(model)
        if isinstance(getattr(first, name), DatabaseDefault)
    ]
    if first.pk is None:
        made.append(model._meta.pk.attname)
    return _select_columns(model, tuple(made))


@cache
def _list_defaulted_columns(model: type[models.Model]) -> Sequence[str]:
    """The columns for which the database has a default of its own."""
    fields = cast(Any, model._meta).concrete_fields
    return [str(field.attname) for field in fields if field.has_db_default()]


@cache
def _select_columns(model: type[models.Model], without: tuple[str, ...]) -> Columns:
    types = _describe_columns(model)
    return tuple(item for item in types.items() if item[0] not in without)


def _mark_stored(rows: Sequence[models.Model], keys: Sequence[Any]) -> None:
    for row, key in zip(rows, keys, strict=True):
        row.pk = key
        row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


def _resolve_column(row: models.Model, name: str, value: Any) -> tuple[str, Any]:
    """A field's column, and a related row's key for the row."""
    column = str(cast(Any, row._meta.get_field(name)).column)
    return column, value.pk if isinstance(value, models.Model) else value


def _to_text(value: Any) -> str:
    """The text by which PostgreSQL reads a value that JSON does not know."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return rf"\x{bytes(value).hex()}"
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1)} microseconds"
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


# Made once: `json.dumps` would make an encoder for each value, which takes as long as
# to write a row.
_to_json = json.JSONEncoder(default=_to_text, ensure_ascii=False).encode

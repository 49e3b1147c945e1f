"""Queries of the ORM that are compiled once a process.

Django compiles a query each time it runs, which takes several times as long as
PostgreSQL takes to answer one by a primary key. The queries of an action are built once
here, with parameters in place of values, and then run as prepared statements.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

from django.core.exceptions import ObjectDoesNotExist
from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.models.expressions import Expression
from django.db.models.fields.related import ForeignObject
from django.db.models.query import (
    FlatValuesListIterable,
    ModelIterable,
    get_related_populators,
)
from django.db.models.sql.compiler import SQLCompiler
from django.db.models.sql.subqueries import UpdateQuery
from psycopg.sql import Literal

from .statements import Row, run_statement

Found = TypeVar("Found")


class Parameter(Expression):
    """Stands in a query for a value that is given when it runs. `output_field` is its
    type, where it is part of a larger expression."""

    def __init__(
        self, name: str, output_field: models.Field[Any, Any] | None = None
    ) -> None:
        super().__init__(output_field=output_field or models.Field())
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", [self]


@models.Field.register_lookup
@ForeignObject.register_lookup
class AnyOf(models.Lookup):
    """`pk__any=Parameter("ids")`: the value is one of a list. Unlike `__in` its text
    does not depend on how long the list is."""

    lookup_name = "any"

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        left, left_values = self.process_lhs(compiler, connection)
        right, right_values = self.process_rhs(compiler, connection)
        return f"{left} = ANY({right})", [*left_values, *right_values]


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A query as a statement. `read_rows` makes of its rows what the query returns."""

    text: str
    parameters: list[str]
    read_rows: Callable[[Iterable[Row]], list[Any]]


class PreparedQuery(Generic[Found]):
    """A query that `build` returns, of rows or of `values_list`, with a `Parameter` for
    each value that differs from one run to the next.

    It is compiled when it runs first. It cannot prefetch, and a lookup of it cannot
    depend on a value being None.
    """

    def __init__(self, build: Callable[[], models.QuerySet[Any, Found]]) -> None:
        self._build = build

    def fetch_all(self, **values: Any) -> list[Found]:
        """Run it with these values of its parameters and return what it finds."""
        compiled = self._compiled
        given = [values[name] for name in compiled.parameters]
        return compiled.read_rows(run_statement(compiled.text, given).rows)

    def fetch_first(self, **values: Any) -> Found | None:
        """Run it and return the first that it finds, or None."""
        rows = self.fetch_all(**values)
        return rows[0] if rows else None

    def fetch_one(self, **values: Any) -> Found:
        """Run it and return the only one that it finds. Raises ObjectDoesNotExist."""
        rows = self.fetch_all(**values)
        if len(rows) != 1:
            raise ObjectDoesNotExist(f"{len(rows)} rows for {values}")
        return rows[0]

    @cached_property
    def _compiled(self) -> _Compiled:
        queryset = self._build()
        compiler = queryset.query.get_compiler(using=DEFAULT_DB_ALIAS)
        text, values = compiler.as_sql()
        kind = queryset._iterable_class
        read_rows = (
            _build_model_reader(compiler)
            if issubclass(kind, ModelIterable)
            else _build_row_reader(
                compiler, flat=issubclass(kind, FlatValuesListIterable)
            )
        )
        return _Compiled(*_fill_placeholders(text, values), read_rows)


class PreparedUpdate:
    """An update of the rows of a query, with a `Parameter` for each value that differs
    from one run to the next. `build` returns the query and its changes by field.

    It is compiled when it runs first. The query cannot join other tables.
    """

    def __init__(
        self, build: Callable[[], tuple[models.QuerySet[Any], dict[str, Any]]]
    ) -> None:
        self._build = build

    def execute(self, **values: Any) -> int:
        """Run it with these values of its parameters and return the number of rows that
        it changed."""
        text, names = self._compiled
        return run_statement(text, [values[name] for name in names]).count

    @cached_property
    def _compiled(self) -> tuple[str, list[str]]:
        queryset, changes = self._build()
        query = cast(Any, queryset.query).chain(UpdateQuery)
        query.add_update_values(changes)
        text, values = query.get_compiler(using=DEFAULT_DB_ALIAS).as_sql()
        return _fill_placeholders(text, values)


class ModelColumns(Generic[Found]):
    """The columns of a model in a statement that is written by hand, where its table is
    called `alias`, and the row of the model from their values."""

    def __init__(self, model: type[Found], alias: str) -> None:
        fields = cast(Any, model)._meta.concrete_fields
        self._model = cast(Any, model)
        self._names = tuple(field.attname for field in fields)
        self._key = self._names.index(self._model._meta.pk.attname)
        self._json = tuple(
            at for at, field in enumerate(fields) if isinstance(field, models.JSONField)
        )
        self.text = ", ".join(f'{alias}."{field.column}"' for field in fields)
        self.count = len(self._names)

    def build_row(self, values: Sequence[Any]) -> Found | None:
        """The row with these values; None where an outer join found none."""
        if values[self._key] is None:
            return None
        given = list(values)
        for at in self._json:
            if given[at] is not None:
                given[at] = json.loads(given[at])
        row: Found = self._model.from_db(DEFAULT_DB_ALIAS, self._names, given)
        return row


def _fill_placeholders(text: str, values: Sequence[Any]) -> tuple[str, list[str]]:
    """Number the parameters, and write the values that are always the same into the
    text: PostgreSQL can then use an index on rows of one status."""
    connection = connections[DEFAULT_DB_ALIAS].connection
    first, *others = text.split("%s")
    parts, names = [first], []
    for value, other in zip(values, others, strict=True):
        if isinstance(value, Parameter):
            names.append(value.name)
            parts.append(f"${len(names)}")
        else:
            parts.append(Literal(value).as_string(connection))
        parts.append(other)
    return "".join(parts).replace("%%", "%"), names


def _build_row_reader(
    compiler: SQLCompiler, *, flat: bool
) -> Callable[[Iterable[Row]], list[Any]]:
    """What `values_list` returns: tuples, or single values for `flat`."""
    convert = _build_converter(compiler)

    def read_rows(rows: Iterable[Row]) -> list[Any]:
        if flat:
            return [row[0] for row in convert(rows)]
        return [tuple(row) for row in convert(rows)]

    return read_rows


def _build_model_reader(compiler: SQLCompiler) -> Callable[[Iterable[Row]], list[Any]]:
    """Rows of a model with those that `select_related` names; as ModelIterable does."""
    select, info = cast(Any, compiler.select), cast(Any, compiler.klass_info)
    annotations = dict(cast(Any, compiler.annotation_col_map) or {})
    convert = _build_converter(compiler)
    fields = info["select_fields"]
    start, end = fields[0], fields[-1] + 1
    names = [column[0].target.attname for column in select[start:end]]
    populators = cast(Any, get_related_populators)(info, select, DEFAULT_DB_ALIAS)

    def read_rows(rows: Iterable[Row]) -> list[Any]:
        instances = []
        for row in convert(rows):
            instance = info["model"].from_db(DEFAULT_DB_ALIAS, names, row[start:end])
            for populator in populators:
                populator.populate(row, instance)
            for name, at in annotations.items():
                setattr(instance, name, row[at])
            instances.append(instance)
        return instances

    return read_rows


def _build_converter(
    compiler: SQLCompiler,
) -> Callable[[Iterable[Row]], Iterable[Any]]:
    """Convert columns that are not what the driver returns, such as JSON."""
    columns = [column for column, _, _ in cast(Any, compiler.select)]
    converters = [
        (at, steps, column)
        for at, (steps, column) in compiler.get_converters(columns).items()
    ]

    def convert_rows(rows: Iterable[Row]) -> Iterable[Any]:
        connection = connections[DEFAULT_DB_ALIAS]
        for row in map(list, rows):
            for at, steps, column in converters:
                for step in steps:
                    row[at] = step(row[at], column, connection)
            yield row

    return convert_rows if converters else iter

"""An SQL statement: its kind, its tables, and whether a condition limits it. Pure.

sqlglot parses it as PostgreSQL does. What databases read differently, and what sqlglot
does not take apart, counts as not decoded. How many rows it touches, and which ones, is
shown only as the tool's reader declared it: `rows` and `keys`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from .arguments import is_personal_name
from .common import Subject, build_presentation, format_count
from .record import build_affected_tags
from .shapes import Cell, Presentation, Tag, ValueRow
from .views import GroupView

MOST_CHARACTERS = 10_000  # characters; a person cannot check a longer statement
SHOWN_KEYS = 5  # of the affected rows that are shown
EVERY_ROW = "No WHERE that selects rows: every row"
_CREATABLE = ("TABLE", "INDEX", "VIEW", "SCHEMA")  # anything else created may be code
# sqlglot's warnings quote the statement, and arguments do not belong in a log.
logging.getLogger("sqlglot").addFilter(lambda record: False)
_STATEMENT_KINDS: dict[type[exp.Expr], str] = {
    exp.Delete: "DELETE",
    exp.Drop: "DROP",
    exp.TruncateTable: "TRUNCATE",
    exp.Alter: "ALTER",
    exp.Update: "UPDATE",
    exp.Merge: "MERGE",
    exp.Insert: "INSERT",
    exp.Create: "CREATE",
    exp.Select: "SELECT",
    exp.SetOperation: "SELECT",
}
_WRITES = (exp.Delete, exp.Update, exp.Merge, exp.Insert)
_GRAVE = {"DELETE": "Deletes rows", "DROP": "Drops", "TRUNCATE": "Empties a table"}
# Databases read these differently.
_DIALECT_DIFFERENCES = (
    (re.compile(r"\\"), "a backslash"),
    (re.compile(r"/\*"), "a comment inside"),
    (re.compile(r"--(?![ \t\n])"), "a comment without a space"),
    (re.compile(r"[#`]"), "an operator that only some databases support"),
    (re.compile(r"\$[A-Za-z_]*\$"), "a dollar-quoted string"),
    (re.compile(r"[^\S \t\n]|[\x00-\x08\x0b-\x1f]"), "a hidden character"),
)


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """One parsed statement."""

    kinds: tuple[str, ...]  # the gravest first, nested ones included
    tables: tuple[str, ...]
    columns: tuple[str, ...] = ()  # columns that are written
    condition: str = ""
    is_unbounded: bool = False  # writes to every row of a table
    functions: tuple[str, ...] = ()
    nulls: int = 0  # columns set to NULL
    drops: bool = False  # an ALTER that drops something


class UnreadableStatement(Exception):
    """The text cannot be parsed with certainty; the message says why."""


def show(subject: Subject) -> Presentation:
    """Present what each statement does; the text itself is shown whole below."""
    try:
        found = parse_statements(subject.text("statement"))
    except UnreadableStatement as error:
        why = f"Not decoded: {error}."
        return build_presentation(
            subject,
            Tag("The statement was not decoded", loud=True),
            *build_affected_tags(subject),
            hidden=[subject.undecoded("statement", why)],
        )
    groups = [
        _build_statement_group(n, one, len(found)) for n, one in enumerate(found, 1)
    ]
    touched = tuple(_build_touched_rows(subject))
    views = [
        *groups,
        *([GroupView("Rows, as declared by the tool", touched)] * bool(touched)),
    ]
    return build_presentation(
        subject,
        *_build_statement_tags(found),
        *build_affected_tags(subject),
        views=views,
        used=("rows", "keys"),
    )


def parse_statements(text: str) -> list[SqlStatement]:
    """Parse a text into statements, in order. Raises `UnreadableStatement`."""
    if not text.strip():
        raise UnreadableStatement("there is no statement")
    if len(text) > MOST_CHARACTERS:
        raise UnreadableStatement(f"it is longer than {MOST_CHARACTERS:,} characters")
    for pattern, what in _DIALECT_DIFFERENCES:
        if pattern.search(text):
            raise UnreadableStatement(f"it has {what}")
    try:
        trees = sqlglot.parse(text, read="postgres")
        found = [_build_statement(tree) for tree in trees if tree is not None]
    except (SqlglotError, RecursionError, ValueError, AttributeError) as error:
        raise UnreadableStatement("it is not plain SQL") from error
    if not found:
        raise UnreadableStatement("there is no statement")
    return found


def _build_statement(tree: exp.Expr) -> SqlStatement:
    writes = list(tree.find_all(*_WRITES))
    kinds = [kind for node in (tree, *writes) for kind in _list_kinds(node)]
    order = list(_STATEMENT_KINDS.values())
    where = list(tree.find_all(exp.Where))
    return SqlStatement(
        tuple(sorted(dict.fromkeys(kinds), key=order.index)),
        tuple(dict.fromkeys(_list_tables(tree))),
        tuple(dict.fromkeys(_list_written_columns(writes))),
        " AND ".join(one.this.sql("postgres") for one in where),
        any(_is_unbounded(node) for node in writes),
        tuple(dict.fromkeys(one.name for one in tree.find_all(exp.Anonymous))),
        sum(isinstance(one.expression, exp.Null) for one in _list_assignments(writes)),
        isinstance(tree, exp.Alter) and tree.find(exp.Drop) is not None,
    )


def _list_kinds(node: exp.Expr) -> Iterator[str]:
    found = [name for kind, name in _STATEMENT_KINDS.items() if isinstance(node, kind)]
    program = isinstance(node, exp.Create) and node.args.get("kind") not in _CREATABLE
    if not found or program:
        raise UnreadableStatement("it is an unsupported kind of statement")
    yield found[0]
    if isinstance(node, exp.Select) and node.args.get("into"):
        yield "CREATE"
    if isinstance(node, exp.Merge) and "THEN DELETE" in node.sql("postgres"):
        yield "DELETE"


def _is_unbounded(node: exp.Expr) -> bool:
    """Whether a DELETE or UPDATE has no condition that tells rows apart."""
    where = node.args.get("where")
    if not isinstance(node, exp.Delete | exp.Update):
        return False
    return where is None or where.find(exp.Column) is None or _is_always_true(where)


def _is_always_true(where: exp.Expr) -> bool:
    """Whether the condition holds for every row: `id = 1 OR 1 = 1`, `id = id`."""
    sides = [(one.left, one.right) for one in where.find_all(exp.Or)]
    either = any(side.find(exp.Column) is None for pair in sides for side in pair)
    return either or any(one.left == one.right for one in where.find_all(exp.EQ))


def _list_tables(tree: exp.Expr) -> Iterator[str]:
    ours = {one.alias for one in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        name = ".".join(part.name for part in table.parts)
        if name and name not in ours:
            yield name


def _list_assignments(written: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
    for one in written:
        if isinstance(one, exp.Update):
            yield from (e for e in one.expressions if isinstance(e, exp.EQ))


def _list_written_columns(written: Sequence[exp.Expr]) -> Iterator[str]:
    for one in _list_assignments(written):
        yield one.this.name
    for node in written:
        if isinstance(node, exp.Insert) and isinstance(node.this, exp.Schema):
            yield from (column.name for column in node.this.expressions)


def _build_statement_group(number: int, one: SqlStatement, of: int) -> GroupView:
    title = "The statement" if of == 1 else f"Statement {number} of {of}"
    said = [
        ("Kind", ", with ".join(one.kinds), _list_grave_warnings(one)),
        ("Tables", ", ".join(one.tables) or "none", ()),
        ("Writes", ", ".join(one.columns), ()),
        ("Only where", one.condition or "", ()),
        ("Calls", ", ".join(one.functions), ("A function can do anything",)),
    ]
    rows = [
        ValueRow(label, f"statement.{number}.{label}", Cell(text), warns=warns)
        for label, text, warns in said
        if text
    ]
    return GroupView(title, tuple(rows), "read as PostgreSQL reads it")


def _list_grave_warnings(one: SqlStatement) -> tuple[str, ...]:
    found = [_GRAVE[kind] for kind in one.kinds if kind in _GRAVE]
    if one.is_unbounded:
        found.append(EVERY_ROW)
    return tuple(found)


def _build_touched_rows(subject: Subject) -> Iterator[ValueRow]:
    rows, keys = subject.read("rows"), subject.read("keys")
    if isinstance(rows, int) and not isinstance(rows, bool):
        yield ValueRow("Rows", "read.rows", Cell(f"{rows:,}"))
    if isinstance(keys, list):
        for number, key in enumerate(keys[:SHOWN_KEYS]):
            yield ValueRow("Key", f"read.keys[{number}]", Cell(str(key)))


def _build_statement_tags(found: list[SqlStatement]) -> Iterator[Tag]:
    nulls = sum(one.nulls for one in found)
    names = {name for one in found for name in one.columns if is_personal_name(name)}
    kinds = {kind for one in found for kind in one.kinds}
    for holds, said in (
        (any(one.is_unbounded for one in found), EVERY_ROW),
        *((kind in kinds, grave) for kind, grave in _GRAVE.items()),
        (any(one.drops for one in found), "Drops a column or more"),
        (nulls, f"Empties {format_count(nulls, 'column')}"),
        (any(one.functions for one in found), "Calls a function of the database"),
        (len(found) > 1, f"{len(found)} statements in one"),
    ):
        if holds:
            yield Tag(said, loud=True)
    if names:
        yield Tag(f"Personal data: {format_count(len(names), 'column')}")

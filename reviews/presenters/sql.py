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

from .arguments import is_personal
from .common import Subject, count, present
from .record import affected
from .shapes import Cell, Presentation, Row, Tag
from .views import Group

LONGEST = 10_000  # characters; a person cannot check a longer statement
KEYS = 5  # of the affected rows that are shown
EVERY_ROW = "No WHERE that tells rows apart: every row"
_MADE = ("TABLE", "INDEX", "VIEW", "SCHEMA")  # anything else created may be code
# sqlglot's warnings quote the statement, and arguments do not belong in a log.
logging.getLogger("sqlglot").addFilter(lambda record: False)
_KINDS: dict[type[exp.Expr], str] = {
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
_DIFFERENT = (
    (re.compile(r"\\"), "a backslash"),
    (re.compile(r"/\*"), "a comment inside"),
    (re.compile(r"--(?![ \t\n])"), "a comment without a space"),
    (re.compile(r"[#`]"), "a sign that only some databases know"),
    (re.compile(r"\$[A-Za-z_]*\$"), "a text in dollar signs"),
    (re.compile(r"[^\S \t\n]|[\x00-\x08\x0b-\x1f]"), "a hidden character"),
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One parsed statement."""

    kinds: tuple[str, ...]  # the gravest first, nested ones included
    tables: tuple[str, ...]
    columns: tuple[str, ...] = ()  # columns that are written
    condition: str = ""
    is_unbounded: bool = False  # writes to every row of a table
    functions: tuple[str, ...] = ()
    nulls: int = 0  # columns set to NULL
    drops: bool = False  # an ALTER that drops something


class Unreadable(Exception):
    """The text cannot be parsed with certainty; the message says why."""


def show(subject: Subject) -> Presentation:
    """Present what each statement does; the text itself is shown whole below."""
    try:
        found = read(subject.text("statement"))
    except Unreadable as error:
        why = f"Not decoded: {error}."
        return present(
            subject,
            Tag("The statement was not decoded", loud=True),
            *affected(subject),
            hidden=[subject.undecoded("statement", why)],
        )
    groups = [_group(n, one, len(found)) for n, one in enumerate(found, 1)]
    touched = tuple(_touched(subject))
    views = [
        *groups,
        *([Group("Which rows, as the tool declared", touched)] * bool(touched)),
    ]
    return present(
        subject, *_tags(found), *affected(subject), views=views, used=("rows", "keys")
    )


def read(text: str) -> list[Statement]:
    """Parse a text into statements, in order. Raises `UnreadableStatement`."""
    if not text.strip():
        raise Unreadable("there is no statement")
    if len(text) > LONGEST:
        raise Unreadable(f"it is longer than {LONGEST:,} characters")
    for pattern, what in _DIFFERENT:
        if pattern.search(text):
            raise Unreadable(f"it has {what}")
    try:
        trees = sqlglot.parse(text, read="postgres")
        found = [_statement(tree) for tree in trees if tree is not None]
    except (SqlglotError, RecursionError, ValueError, AttributeError) as error:
        raise Unreadable("it is not plain SQL") from error
    if not found:
        raise Unreadable("there is no statement")
    return found


def _statement(tree: exp.Expr) -> Statement:
    writes = list(tree.find_all(*_WRITES))
    kinds = [kind for node in (tree, *writes) for kind in _kinds(node)]
    order = list(_KINDS.values())
    where = list(tree.find_all(exp.Where))
    return Statement(
        tuple(sorted(dict.fromkeys(kinds), key=order.index)),
        tuple(dict.fromkeys(_tables(tree))),
        tuple(dict.fromkeys(_columns(writes))),
        " AND ".join(one.this.sql("postgres") for one in where),
        any(_is_unbounded(node) for node in writes),
        tuple(dict.fromkeys(one.name for one in tree.find_all(exp.Anonymous))),
        sum(isinstance(one.expression, exp.Null) for one in _set(writes)),
        isinstance(tree, exp.Alter) and tree.find(exp.Drop) is not None,
    )


def _kinds(node: exp.Expr) -> Iterator[str]:
    found = [name for kind, name in _KINDS.items() if isinstance(node, kind)]
    program = isinstance(node, exp.Create) and node.args.get("kind") not in _MADE
    if not found or program:
        raise Unreadable("it is a statement of another kind")
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
    return where is None or where.find(exp.Column) is None or _is_open(where)


def _is_open(where: exp.Expr) -> bool:
    """Whether the condition holds for every row: `id = 1 OR 1 = 1`, `id = id`."""
    sides = [(one.left, one.right) for one in where.find_all(exp.Or)]
    either = any(side.find(exp.Column) is None for pair in sides for side in pair)
    return either or any(one.left == one.right for one in where.find_all(exp.EQ))


def _tables(tree: exp.Expr) -> Iterator[str]:
    ours = {one.alias for one in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        name = ".".join(part.name for part in table.parts)
        if name and name not in ours:
            yield name


def _set(written: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
    for one in written:
        if isinstance(one, exp.Update):
            yield from (e for e in one.expressions if isinstance(e, exp.EQ))


def _columns(written: Sequence[exp.Expr]) -> Iterator[str]:
    for one in _set(written):
        yield one.this.name
    for node in written:
        if isinstance(node, exp.Insert) and isinstance(node.this, exp.Schema):
            yield from (column.name for column in node.this.expressions)


def _group(number: int, one: Statement, of: int) -> Group:
    title = "The statement" if of == 1 else f"Statement {number} of {of}"
    said = [
        ("Kind", ", with ".join(one.kinds), _warned(one)),
        ("Tables", ", ".join(one.tables) or "none", ()),
        ("Writes", ", ".join(one.columns), ()),
        ("Only where", one.condition or "", ()),
        ("Calls", ", ".join(one.functions), ("A function may do anything",)),
    ]
    rows = [
        Row(label, f"statement.{number}.{label}", Cell(text), warns=warns)
        for label, text, warns in said
        if text
    ]
    return Group(title, tuple(rows), "read as PostgreSQL reads it")


def _warned(one: Statement) -> tuple[str, ...]:
    found = [_GRAVE[kind] for kind in one.kinds if kind in _GRAVE]
    if one.is_unbounded:
        found.append(EVERY_ROW)
    return tuple(found)


def _touched(subject: Subject) -> Iterator[Row]:
    rows, keys = subject.read("rows"), subject.read("keys")
    if isinstance(rows, int) and not isinstance(rows, bool):
        yield Row("Rows", "read.rows", Cell(f"{rows:,}"))
    if isinstance(keys, list):
        for number, key in enumerate(keys[:KEYS]):
            yield Row("Key", f"read.keys[{number}]", Cell(str(key)))


def _tags(found: list[Statement]) -> Iterator[Tag]:
    nulls = sum(one.nulls for one in found)
    names = {name for one in found for name in one.columns if is_personal(name)}
    kinds = {kind for one in found for kind in one.kinds}
    for holds, said in (
        (any(one.is_unbounded for one in found), EVERY_ROW),
        *((kind in kinds, grave) for kind, grave in _GRAVE.items()),
        (any(one.drops for one in found), "Drops a column or more"),
        (nulls, f"Empties {count(nulls, 'column')}"),
        (any(one.functions for one in found), "Calls a function of the database"),
        (len(found) > 1, f"{len(found)} statements in one"),
    ):
        if holds:
            yield Tag(said, loud=True)
    if names:
        yield Tag(f"Personal data: {count(len(names), 'column')}")

"""An SQL statement: its kind, its tables, and whether a condition limits it. Pure.

sqlglot parses it as PostgreSQL does. What databases read differently, and what sqlglot
does not take apart, counts as not decoded; `sql_heads` then says what it does. How many
rows it touches, and which ones, is shown only as the tool's reader declared it: `rows`
and `keys`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.simplify import simplify

from .arguments import format_count, is_personal_name
from .common import Subject, build_loud_tags, build_presentation
from .record import build_affected_tags
from .shapes import Cell, Presentation, Tag, ValueRow
from .sql_heads import (
    MOST_CHARACTERS,
    list_effects,
    list_function_effects,
    list_hidden_places,
    list_tokens,
)
from .views import GroupView

MOST_BRACKETS = 100  # square ones, whose nesting sqlglot reads in quadratic time
SHOWN_KEYS = 5  # of the affected rows that are shown
OTHERWISE = "MySQL and SQL Server may read it otherwise"
EVERY_ROW = "Affects every row: no WHERE limits it"
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
_PARSER_ERRORS = (
    *(SqlglotError, RecursionError, ValueError, AttributeError, TypeError),
    *(ArithmeticError, LookupError),
)
_AMBIGUOUS = re.compile(r"\"|\|\|")  # in MySQL a string, and OR
_BRACKETED = re.compile(r"\[[^\]]*\]")
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
    overwrites: tuple[str, ...] = ()  # what it does to rows or tables that exist
    nulls: int = 0  # columns set to NULL
    drops: bool = False  # an ALTER that drops something


class UnreadableStatement(Exception):
    """The text cannot be parsed with certainty; the message says why."""


def show(subject: Subject) -> Presentation:
    """Present what each statement does; the text itself is shown whole below."""
    text = subject.text("statement")
    try:
        statements = parse_statements(text)
    except UnreadableStatement as error:
        return build_presentation(
            subject,
            Tag("The statement was not decoded", loud=True),
            *(Tag(effect, loud=True) for effect in list_effects(text)),
            *build_affected_tags(subject),
            hidden=[subject.undecoded("statement", f"Not decoded: {error}.")],
        )
    groups = [
        _build_statement_group(number, statement, len(statements))
        for number, statement in enumerate(statements, 1)
    ]
    touched = tuple(_build_touched_rows(subject))
    return build_presentation(
        subject,
        *_build_statement_tags(statements, text),
        *build_affected_tags(subject),
        views=[*groups, GroupView("Rows, as declared by the tool", touched)],
        used=("rows", "keys"),
    )


def parse_statements(text: str) -> list[SqlStatement]:
    """Parse a text into statements, in order. Raises `UnreadableStatement`."""
    if not text.strip():
        raise UnreadableStatement("there is no statement")
    if len(text) > MOST_CHARACTERS:
        raise UnreadableStatement(f"it is longer than {MOST_CHARACTERS:,} characters")
    if text.count("[") > MOST_BRACKETS:
        raise UnreadableStatement(f"it has more than {MOST_BRACKETS} square brackets")
    _check_dialects(text)
    try:
        trees = sqlglot.parse(text, read="postgres")
        statements = [_build_statement(tree) for tree in trees if tree is not None]
    except _PARSER_ERRORS as error:
        raise UnreadableStatement("it is not plain SQL") from error
    if not statements:
        raise UnreadableStatement("there is no statement")
    return statements


def _check_dialects(text: str) -> None:
    """Raise `UnreadableStatement` for what MySQL or SQL Server reads otherwise."""
    for pattern, what in _DIALECT_DIFFERENCES:
        if pattern.search(text):
            raise UnreadableStatement(f"it has {what}; {OTHERWISE}")
    ends = [match.end() for match in _BRACKETED.finditer(text)]
    if any(text.count("'", 0, end) % 2 for end in ends):
        raise UnreadableStatement(f"it has a bracket in a string; {OTHERWISE}")
    tokens = list_tokens(text)
    for place in list_hidden_places(tokens):
        raise UnreadableStatement(
            f"{tokens[place].text} may begin another statement; {OTHERWISE}"
        )


def _build_statement(tree: exp.Expr) -> SqlStatement:
    writes = list(tree.find_all(*_WRITES))
    kinds = [kind for node in (tree, *writes) for kind in _list_kinds(node)]
    order = list(_STATEMENT_KINDS.values())
    where = list(tree.find_all(exp.Where))
    return SqlStatement(
        tuple(sorted(dict.fromkeys(kinds), key=order.index)),
        tuple(dict.fromkeys(_list_tables(tree))),
        tuple(dict.fromkeys(_list_written_columns(writes))),
        " AND ".join(clause.this.sql("postgres") for clause in where),
        any(_is_unbounded(node) for node in writes),
        tuple(dict.fromkeys(call.name for call in tree.find_all(exp.Anonymous))),
        tuple(dict.fromkeys(_list_overwrites(tree, writes))),
        sum(
            isinstance(assignment.expression, exp.Null)
            for assignment in _list_assignments(writes)
        ),
        isinstance(tree, exp.Alter) and tree.find(exp.Drop) is not None,
    )


def _list_kinds(node: exp.Expr) -> Iterator[str]:
    kinds = [name for kind, name in _STATEMENT_KINDS.items() if isinstance(node, kind)]
    program = isinstance(node, exp.Create) and node.args.get("kind") not in _CREATABLE
    if not kinds or program:
        raise UnreadableStatement("it is an unsupported kind of statement")
    yield kinds[0]
    if isinstance(node, exp.Select) and node.args.get("into"):
        yield "CREATE"
    if isinstance(node, exp.Merge) and "THEN DELETE" in node.sql("postgres"):
        yield "DELETE"


def _list_overwrites(tree: exp.Expr, writes: Sequence[exp.Expr]) -> Iterator[str]:
    conflicts = [
        conflict for conflict in tree.find_all(exp.OnConflict) if conflict.expressions
    ]
    if conflicts:
        yield "Overwrites rows that exist already"
    if any(isinstance(write, exp.Merge) for write in writes):
        yield "Changes rows that exist already"
    if any(select.args.get("into") for select in tree.find_all(exp.Select)):
        yield "Writes the result into a new table"
    if isinstance(tree, exp.Create) and tree.args.get("replace"):
        yield "Replaces what has this name"


def _is_unbounded(node: exp.Expr) -> bool:
    """Whether a DELETE, UPDATE or MERGE has no condition that tells rows apart."""
    if isinstance(node, exp.Merge):
        where = node.args.get("on")
    elif isinstance(node, exp.Delete | exp.Update) and not node.find_ancestor(exp.When):
        where = node.args.get("where")
    else:
        return False
    condition = where.this if isinstance(where, exp.Where) else where
    if condition is None or _is_always(condition, True):
        return True
    table = node.find(exp.Table)
    own = {"", table.alias_or_name} if table else {""}
    return not any(
        _is_of_row(column, node, own) for column in condition.find_all(exp.Column)
    )


def _is_of_row(column: exp.Column, node: exp.Expr, own: set[str]) -> bool:
    """Whether a column in a condition is one of the rows that `node` writes. Inside
    another query only a column that names the table is."""
    inner = column.find_ancestor(exp.Select, exp.SetOperation)
    inside = inner is not None and inner.find_ancestor(type(node)) is node
    return column.table in (own - {""} if inside else own)


_SAME = {True: (exp.EQ, exp.GTE, exp.LTE, exp.NullSafeEQ), False: (exp.NEQ, exp.LT)}
_OPPOSITES: dict[type[exp.Expr], str] = {
    exp.EQ: "<>",
    exp.NEQ: "=",
    exp.LT: ">=",
    exp.GTE: "<",
    exp.GT: "<=",
    exp.LTE: ">",
}


def _is_always(condition: exp.Expr, truth: bool) -> bool:
    """Whether the condition has this value for every row: `id = 1 OR 1 = 1`, `id = id`,
    `id IS NULL OR id IS NOT NULL`, `id LIKE '%'`."""
    node = condition.unnest()
    if isinstance(node, exp.Not):
        return _is_always(node.this, not truth)
    if isinstance(node, exp.And | exp.Or):
        parts = list(node.flatten())
        held = [_is_always(part, truth) for part in parts]
        if isinstance(node, exp.And) == truth:
            return all(held)
        return any(held) or _has_opposites(parts)
    if isinstance(node, exp.Like | exp.ILike):
        given = node.expression
        return truth and isinstance(given, exp.Literal) and set(given.name) == {"%"}
    same = isinstance(node, _SAME[truth])
    if same and node.this.unnest() == node.expression.unnest():
        return True
    plain = simplify(node.copy())
    if isinstance(plain, exp.Boolean):
        return bool(plain.this) == truth
    return truth and node.find(exp.Column) is None


def _has_opposites(parts: Sequence[exp.Expr]) -> bool:
    """Whether one of the conditions is true wherever another one is false."""
    plain = [part.unnest() for part in parts]
    written = {part.sql() for part in plain}
    return any(_write_opposite(part) in written for part in plain)


def _write_opposite(part: exp.Expr) -> str:
    if isinstance(part, exp.Not):
        return str(part.this.unnest().sql())
    if isinstance(part, exp.Is):
        other = part.copy()
        other.set("negate", not part.args.get("negate"))
        return other.sql()
    sign = _OPPOSITES.get(type(part), "")
    return f"{part.this} {sign} {part.expression}" if sign else ""


def _list_tables(tree: exp.Expr) -> Iterator[str]:
    ours = {query.alias for query in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        name = ".".join(part.name for part in table.parts)
        if name and name not in ours:
            yield name


def _list_assignments(written: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
    for write in written:
        if isinstance(write, exp.Update):
            yield from (e for e in write.expressions if isinstance(e, exp.EQ))
        elif isinstance(write, exp.Insert) and write.args.get("conflict"):
            given = write.args["conflict"].expressions
            yield from (e for e in given if isinstance(e, exp.EQ))


def _list_written_columns(written: Sequence[exp.Expr]) -> Iterator[str]:
    for assignment in _list_assignments(written):
        yield assignment.this.name
    for node in written:
        if isinstance(node, exp.Insert) and isinstance(node.this, exp.Schema):
            yield from (column.name for column in node.this.expressions)


def _build_statement_group(number: int, statement: SqlStatement, of: int) -> GroupView:
    title = "The statement" if of == 1 else f"Statement {number} of {of}"
    lines = [
        ("Kind", ", with ".join(statement.kinds), _list_grave_warnings(statement)),
        ("Tables", ", ".join(statement.tables) or "none", ()),
        ("Writes", ", ".join(statement.columns), ()),
        ("Only where", statement.condition, ()),
        ("Calls", ", ".join(statement.functions), ("A function can do anything",)),
    ]
    rows = [
        ValueRow(label, f"statement.{number}.{label}", Cell(text), warns=warns)
        for label, text, warns in lines
        if text
    ]
    return GroupView(title, tuple(rows), f"read as PostgreSQL reads it; {OTHERWISE}")


def _list_grave_warnings(statement: SqlStatement) -> tuple[str, ...]:
    warnings = [_GRAVE[kind] for kind in statement.kinds if kind in _GRAVE]
    if statement.is_unbounded:
        warnings.append(EVERY_ROW)
    return (*warnings, *statement.overwrites)


def _build_touched_rows(subject: Subject) -> Iterator[ValueRow]:
    rows, keys = subject.read("rows"), subject.read("keys")
    if isinstance(rows, int) and not isinstance(rows, bool):
        yield ValueRow("Rows", "read.rows", Cell(f"{rows:,}"))
    if isinstance(keys, list):
        for number, key in enumerate(keys[:SHOWN_KEYS]):
            yield ValueRow("Key", f"read.keys[{number}]", Cell(str(key)))


def _build_statement_tags(statements: list[SqlStatement], text: str) -> Iterator[Tag]:
    nulls = sum(statement.nulls for statement in statements)
    columns = {name for statement in statements for name in statement.columns}
    kinds = {kind for statement in statements for kind in statement.kinds}
    effects = [effect for statement in statements for effect in statement.overwrites]
    functions = any(statement.functions for statement in statements)
    yield from build_loud_tags(
        (any(statement.is_unbounded for statement in statements), EVERY_ROW),
        *((kind in kinds, grave) for kind, grave in _GRAVE.items()),
        (any(statement.drops for statement in statements), "Drops a column or more"),
        (nulls, f"Empties {format_count(nulls, 'column')}"),
        *((True, effect) for effect in effects),
        (functions, "Calls a function of the database"),
        *((True, effect) for effect in list_function_effects(list_tokens(text))),
        (len(statements) > 1, f"{len(statements)} statements in one"),
    )
    if _AMBIGUOUS.search(text):
        yield Tag(f"Quotes or ||: {OTHERWISE}")
    if personal := sum(map(is_personal_name, columns)):
        yield Tag(f"Personal data: {format_count(personal, 'column')}")

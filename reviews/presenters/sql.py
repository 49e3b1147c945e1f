"""An SQL statement: its kind, its tables, and whether a condition limits it. Pure.

sqlglot parses it as PostgreSQL does. What databases read differently, and what sqlglot
does not take apart, counts as not decoded; the words that begin its statements are then
looked up in a table. How many rows it touches, and which ones, is
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
from sqlglot.optimizer.simplify import simplify

from .arguments import is_personal_name
from .common import Subject, build_loud_tags, build_presentation, format_count
from .record import build_affected_tags
from .shapes import Cell, Presentation, Tag, ValueRow
from .views import GroupView

MOST_CHARACTERS = 10_000  # characters; a person cannot check a longer statement
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
# What a statement does, by the words that begin it, the longest first: the statements
# of the grammars of PostgreSQL, MySQL and SQL Server.
READS, WRITES, DESTROYS, GRANTS, RUNS = (
    *("", "Changes data, settings or what runs", "Destroys data"),
    *("Changes who may do what", "Runs code"),
)
_HEAD_LINES = {
    READS: """
        SELECT|VALUES|TABLE|WITH|SHOW|EXPLAIN|DESCRIBE|DESC|HELP|FETCH|DECLARE|CHECKSUM
        READTEXT|PRINT|RAISERROR|THROW|SIGNAL|RESIGNAL|GET|BEGIN|START|END|COMMIT|ABORT
        ROLLBACK|SAVEPOINT|SAVE|RELEASE|XA|CLOSE|OPEN|DEALLOCATE|LISTEN|UNLISTEN|GO|USE
        WAITFOR|WAIT|ANALYZE|ANALYSE|CHECK|IF|WHILE|CASE|LOOP|REPEAT|BREAK|CONTINUE|GOTO
        RETURN|LEAVE|ITERATE|HANDLER|UNLOCK|LOCK|MOVE|DELIMITER|PREDICT|ELSE
        SET TRANSACTION|SET NAMES|SET CONSTRAINTS|START TRANSACTION""",
    WRITES: """
        INSERT|UPDATE|MERGE|UPSERT|COPY|LOAD DATA|LOAD XML|LOAD TABLE|LOAD INDEX|BULK
        UPDATETEXT|WRITETEXT|CREATE|ALTER|COMMENT|RENAME|REFRESH|REINDEX|CLUSTER|REPACK
        CHECKPOINT|NOTIFY|SEND|RECEIVE|SET|DISCARD|RESET|RECONFIGURE|OPTIMIZE|REPAIR
        CACHE|FLUSH|IMPORT|BACKUP|ENABLE|DISABLE|ADD|CHANGE|CLONE|STOP|PRELOAD|SECURITY
        BINLOG|DBCC|START REPLICA|START SLAVE|START GROUP_REPLICATION|VACUUM|DUMP
        MOVE CONVERSATION|GET CONVERSATION|KILL|SHUTDOWN|RESTART""",
    DESTROYS: """
        DELETE|DROP|TRUNCATE|REPLACE|PURGE|RESTORE|RESET MASTER|RESET BINARY""",
    GRANTS: """
        GRANT|REVOKE|DENY|SETUSER|REVERT|REASSIGN|EXECUTE AS|EXEC AS|SET ROLE
        SET SESSION AUTHORIZATION|SET LOCAL ROLE|SET SESSION ROLE|SET PASSWORD
        SET DEFAULT|RESET ROLE|RESET SESSION|ALTER USER|ALTER ROLE|ALTER GROUP
        ALTER LOGIN|ALTER DEFAULT|ALTER AUTHORIZATION|ALTER POLICY|ALTER SERVER
        ALTER CREDENTIAL|ALTER CERTIFICATE|ADD SIGNATURE|CREATE USER|CREATE ROLE
        CREATE GROUP|CREATE LOGIN|CREATE POLICY|CREATE SERVER|CREATE CREDENTIAL
        CREATE CERTIFICATE|CREATE SECURITY|ALTER SECURITY|OPEN MASTER|OPEN SYMMETRIC
        SECURITY LABEL|RENAME USER""",
    RUNS: """
        DO|CALL|EXEC|EXECUTE|PREPARE|LOAD|INSTALL|UNINSTALL|SOURCE|SYSTEM|ALTER SYSTEM
        EXPLAIN ANALYZE|EXPLAIN ANALYSE|CREATE FUNCTION|CREATE PROCEDURE|CREATE PROC
        CREATE TRIGGER|CREATE RULE|CREATE EXTENSION|CREATE LANGUAGE|CREATE TRUSTED
        CREATE PROCEDURAL|CREATE ASSEMBLY|CREATE EVENT|CREATE AGGREGATE|CREATE OPERATOR
        CREATE CAST|CREATE CONVERSION|CREATE TRANSFORM|CREATE ROUTINE|CREATE DEFINER
        CREATE EXTERNAL|ALTER FUNCTION|ALTER PROCEDURE|ALTER PROC
        ALTER TRIGGER|ALTER EVENT|ALTER EXTENSION|ALTER ASSEMBLY|ALTER ROUTINE
        ENABLE TRIGGER|CREATE CONSTRAINT""",
}
HEADS = {
    head: does
    for does, lines in _HEAD_LINES.items()
    for head in re.split(r"[|\n]", re.sub(r"\n[ ]+", "\n", lines).strip())
}
# SQL Server begins a statement at one of these words without a semicolon before it.
_BATCH_HEADS = """
ALTER BACKUP BEGIN BULK CHECKPOINT COMMIT CREATE DBCC DECLARE DELETE DENY DROP DUMP EXEC
EXECUTE GRANT INSERT KILL MERGE RECONFIGURE RESTORE REVERT REVOKE ROLLBACK SAVE SET
SETUSER SHUTDOWN TRUNCATE UPDATE UPDATETEXT USE WAITFOR WRITETEXT
"""
# Words and signs after which such a word belongs to the same statement.
_GOES_ON = """
ADD AND AS BETWEEN BY CASE COLUMN COMMIT DELETE DISTINCT DO ELSE EXCEPT EXISTS FOR FROM
FULL HAVING IN INDEX INNER INTERSECT INTO IS JOIN KEY LEFT LIKE NOT ON ONLY OR OUTER
RENAME RETURNING RIGHT SELECT SET TABLE THEN TO UNION UPDATE USING VIEW WHEN WHERE WITH
( , . = < > + - / % | & ~ ^ ! : @
"""
# Words and signs after which a statement begins in each database.
_OPENS = "AS BEGIN DO ELSE EXPLAIN ANALYZE ANALYSE GO LOOP REPEAT THEN ; ( )"
_MAIN = ("SELECT", "DELETE", "UPDATE", "INSERT", "MERGE")  # after WITH
_ALTER_PARTS = """
COLUMN CONSTRAINT DATA DEFAULT EXPRESSION IDENTITY LOGGED LOGGING NOT SCHEMA STATISTICS
STORAGE TABLESPACE UNLOGGED WITHOUT
"""
# Phrases that do something of their own, wherever they stand.
_PHRASES = (
    (re.compile(r"\b(?:TO|FROM)\s+PROGRAM\b", re.IGNORECASE), RUNS),
    (re.compile(r"\bSONAME\b", re.IGNORECASE), RUNS),
    (re.compile(r"\bINTO\s+(?:OUT|DUMP)FILE\b", re.IGNORECASE), "Writes a file"),
    (re.compile(r"\bSECURITY\s+DEFINER\b", re.IGNORECASE), GRANTS),
    (re.compile(r"\bOWNER\s+TO\b", re.IGNORECASE), GRANTS),
    (re.compile(r"/\*M?!", re.IGNORECASE), "MySQL runs what a comment contains"),
)
_EFFECTS = re.compile(
    r"pg_(?:terminate|cancel|reload|rotate|switch|promote|create|drop|logical|file"
    r"|replication|read|ls|stat_file|stat_reset|write|export|import|start|stop|backup"
    r"|wal_replay|advisory|try_advisory|sleep|log_backend|restore)\w*|lo_\w+|loread"
    r"|lowrite|dblink\w*|setval|nextval|set_config|(?:query|table|schema|cursor"
    r"|database)_to_xml\w*|xp_\w+|sp_\w+|load_file|load_extension|writefile|sys_exec"
    r"|sys_eval|openrowset|openquery|opendatasource|benchmark|sleep|get_lock"
    r"|release_(?:all_)?locks?|fn_\w+|utl_\w+|dbms_\w+",
    re.IGNORECASE,
)
_PARSER_ERRORS = (
    *(SqlglotError, RecursionError, ValueError, AttributeError, TypeError),
    *(ArithmeticError, LookupError),
)
_AMBIGUOUS = re.compile(r"\"|\|\|")  # in MySQL a string, and OR
_BRACKETED = re.compile(r"\[[^\]]*\]")
_TOKENS = re.compile(
    r"""'(?:[^']|'')*(?:'|\Z) | (?P<quoted>"(?:[^"]|"")*(?:"|\Z) | `[^`]*(?:`|\Z))
    | (?P<gap> --[ \t][^\n]* | --(?=\n) | /\*M?!\d* | /\*(?:[^*]|\*(?!/))*(?:\*/|\Z)
        | \*/ | \s+)
    | (?P<word>[^\W\d]\w*) | \d[\w.]* | \[[^\]]*(?:\]|\Z) | (?P<sign>\S)""",
    re.VERBOSE,
)
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
        why = f"Not decoded: {error}."
        return build_presentation(
            subject,
            Tag("The statement was not decoded", loud=True),
            *(Tag(effect, loud=True) for effect in list_effects(text)),
            *build_affected_tags(subject),
            hidden=[subject.undecoded("statement", why)],
        )
    groups = [
        _build_statement_group(n, statement, len(statements))
        for n, statement in enumerate(statements, 1)
    ]
    touched = tuple(_build_touched_rows(subject))
    views = [
        *groups,
        *([GroupView("Rows, as declared by the tool", touched)] * bool(touched)),
    ]
    return build_presentation(
        subject,
        *_build_statement_tags(statements, text),
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
    tokens = _list_tokens(text)
    for place in _list_hidden_places(tokens):
        raise UnreadableStatement(
            f"{tokens[place].text} may begin another statement; {OTHERWISE}"
        )


@dataclass(frozen=True, slots=True)
class _Token:
    """A word in capitals, a sign, or "" for anything quoted and for numbers."""

    text: str
    is_word: bool
    is_called: bool  # an opening bracket follows
    name: str  # of a word or quoted name, as it is written
    starts_line: bool = False


def _list_tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    line = True
    for match in _TOKENS.finditer(text[:MOST_CHARACTERS]):
        if match["gap"]:
            line = line or "\n" in match[0]
            continue
        word, sign = match["word"] or "", match["sign"] or ""
        after = text[match.end() : match.end() + 100].lstrip()
        name = word or (match["quoted"] or "").strip('"`')
        called = after.startswith("(")
        tokens.append(_Token(word.upper() or sign, bool(word), called, name, line))
        line = False
    return tokens


def list_effects(text: str) -> list[str]:
    """What the statements of an undecoded text do, by the words that begin them."""
    tokens = _list_tokens(text)
    hidden = set(_list_hidden_places(tokens))
    effects = []
    for place, token in enumerate(tokens):
        before = tokens[place - 1].text if place else ";"
        if token.is_word and (before in _OPENS.split() or place in hidden):
            effects.append(find_head([word.text for word in tokens[place : place + 5]]))
    effects += [effect for pattern, effect in _PHRASES if pattern.search(text)]
    effects += list(_list_function_effects(tokens))
    return [effect for effect in dict.fromkeys(effects) if effect]


def find_head(words: Sequence[str]) -> str:
    """What a statement that begins with these words in capitals does; "" if it only
    reads, or if no statement begins so."""
    if words[1:2] == ["OR"]:  # CREATE OR REPLACE
        words = [words[0], *words[3:]]
    forms = (" ".join(words[:length]) for length in (3, 2, 1))
    return next((HEADS[form] for form in forms if form in HEADS), READS)


def _list_function_effects(tokens: Sequence[_Token]) -> Iterator[str]:
    for token in tokens:
        if token.is_called and _EFFECTS.fullmatch(token.name):
            yield f"Calls {token.name.lower()}, which does more than read"


def _list_hidden_places(tokens: Sequence[_Token]) -> Iterator[int]:
    """Where SQL Server begins a statement that PostgreSQL does not."""
    heads, start, updates = _BATCH_HEADS.split(), 0, 0
    for place, token in enumerate(tokens):
        if not place or tokens[place - 1].text == ";":
            start, updates = place, 0
        updates += token.text == "UPDATE"
        ends_line = place + 1 == len(tokens) or tokens[place + 1].starts_line
        if token.text == "GO" and token.starts_line and ends_line:
            yield place
        if not token.is_word or token.text not in heads or place == start:
            continue
        if token.text == "SET" and updates:  # UPDATE t SET
            updates -= 1
        elif not _goes_on(tokens, place, start):
            yield place


def _list_outer_verbs(tokens: Sequence[_Token]) -> list[str]:
    """The verbs of statements that stand outside all brackets."""
    depth, verbs = 0, []
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        verbs += [token.text] * (depth == 0 and token.text in _MAIN)
    return verbs


def _goes_on(tokens: Sequence[_Token], place: int, start: int) -> bool:
    """Whether the word at `place` continues the statement that begins at `start`."""
    before = tokens[place - 1].text
    first, word = tokens[start].text, tokens[place].text
    if before == "*":  # of a product, or of `SELECT *`
        return tokens[place - 2].text not in ("SELECT", "DISTINCT", ".")
    if first == "WITH" and before == ")" and word in _MAIN:
        return not _list_outer_verbs(tokens[start:place])
    if first == "ALTER" and word in ("ALTER", "DROP", "SET"):
        following = [part.text for part in tokens[place + 1 : place + 2]]
        return bool(following and following[0] in _ALTER_PARTS.split())
    return before in _GOES_ON.split()


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
}
_OPPOSITES |= {exp.LTE: ">"}


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
        ("Only where", statement.condition or "", ()),
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
    names = {
        name
        for statement in statements
        for name in statement.columns
        if is_personal_name(name)
    }
    kinds = {kind for statement in statements for kind in statement.kinds}
    functions = any(statement.functions for statement in statements)
    yield from build_loud_tags(
        (any(statement.is_unbounded for statement in statements), EVERY_ROW),
        *((kind in kinds, grave) for kind, grave in _GRAVE.items()),
        (any(statement.drops for statement in statements), "Drops a column or more"),
        (nulls, f"Empties {format_count(nulls, 'column')}"),
        *(
            (True, effect)
            for statement in statements
            for effect in statement.overwrites
        ),
        (functions, "Calls a function of the database"),
        *((True, effect) for effect in _list_function_effects(_list_tokens(text))),
        (len(statements) > 1, f"{len(statements)} statements in one"),
    )
    if _AMBIGUOUS.search(text):
        yield Tag(f"Quotes or ||: {OTHERWISE}")
    if names:
        yield Tag(f"Personal data: {format_count(len(names), 'column')}")

"""The words of an SQL statement that was not decoded: what the statements in it do, and
where a database may begin one that PostgreSQL does not. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MOST_CHARACTERS = 10_000  # characters; a person cannot check a longer statement
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
_TOKENS = re.compile(
    r"""'(?:[^']|'')*(?:'|\Z) | (?P<quoted>"(?:[^"]|"")*(?:"|\Z) | `[^`]*(?:`|\Z))
    | (?P<gap> --[ \t][^\n]* | --(?=\n) | /\*M?!\d* | /\*(?:[^*]|\*(?!/))*(?:\*/|\Z)
        | \*/ | \s+)
    | (?P<word>[^\W\d]\w*) | \d[\w.]* | \[[^\]]*(?:\]|\Z) | (?P<sign>\S)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word in capitals, a sign, or "" for anything quoted and for numbers."""

    text: str
    is_word: bool
    is_called: bool  # an opening bracket follows
    name: str  # of a word or quoted name, as it is written
    starts_line: bool = False


def list_tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    line = True
    for match in _TOKENS.finditer(text[:MOST_CHARACTERS]):
        if match["gap"]:
            line = line or "\n" in match[0]
            continue
        word, sign = match["word"] or "", match["sign"] or ""
        after = text[match.end() : match.end() + 100].lstrip()
        name = word or (match["quoted"] or "").strip('"`')
        called = after.startswith("(")
        tokens.append(Token(word.upper() or sign, bool(word), called, name, line))
        line = False
    return tokens


def list_effects(text: str) -> list[str]:
    """What the statements of an undecoded text do, by the words that begin them."""
    tokens = list_tokens(text)
    hidden = set(list_hidden_places(tokens))
    effects = []
    for place, token in enumerate(tokens):
        before = tokens[place - 1].text if place else ";"
        if token.is_word and (before in _OPENS.split() or place in hidden):
            effects.append(find_head([word.text for word in tokens[place : place + 5]]))
    effects += [effect for pattern, effect in _PHRASES if pattern.search(text)]
    effects += list(list_function_effects(tokens))
    return [effect for effect in dict.fromkeys(effects) if effect]


def find_head(words: Sequence[str]) -> str:
    """What a statement that begins with these words in capitals does; "" if it only
    reads, or if no statement begins so."""
    if words[1:2] == ["OR"]:  # CREATE OR REPLACE
        words = [words[0], *words[3:]]
    forms = (" ".join(words[:length]) for length in (3, 2, 1))
    return next((HEADS[form] for form in forms if form in HEADS), READS)


def list_function_effects(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.is_called and _EFFECTS.fullmatch(token.name):
            yield f"Calls {token.name.lower()}, which does more than read"


def list_hidden_places(tokens: Sequence[Token]) -> Iterator[int]:
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


def _list_outer_verbs(tokens: Sequence[Token]) -> list[str]:
    depth, verbs = 0, []
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        verbs += [token.text] * (depth == 0 and token.text in _MAIN)
    return verbs


def _goes_on(tokens: Sequence[Token], place: int, start: int) -> bool:
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

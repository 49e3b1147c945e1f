"""Each kind of statement of three databases is told by the words that begin it."""

from __future__ import annotations

import pytest

from reviews.presenters import sql, sql_heads
from reviews.presenters.sql_heads import DESTROYS, GRANTS, READS, RUNS, WRITES
from tests.reviews.presenters import kinds
from tests.reviews.presenters.kinds import loud, rows, tags

# The statements of PostgreSQL's gram.y, MySQL's sql_yacc.yy and the T-SQL reference.
POSTGRESQL = {
    READS: "ABORT ANALYZE BEGIN CLOSE COMMIT DEALLOCATE DECLARE END EXPLAIN FETCH"
    " LISTEN LOCK MOVE RELEASE ROLLBACK SAVEPOINT SELECT SHOW START TABLE UNLISTEN"
    " VALUES WITH",
    WRITES: "ALTER CHECKPOINT CLUSTER COMMENT COPY CREATE DISCARD IMPORT INSERT MERGE"
    " NOTIFY REFRESH REINDEX RESET SET UPDATE VACUUM SECURITY",
    DESTROYS: "DELETE DROP TRUNCATE",
    GRANTS: "GRANT REVOKE REASSIGN",
    RUNS: "CALL DO EXECUTE LOAD PREPARE",
}
MYSQL = {
    READS: "ANALYZE BEGIN CHECK CHECKSUM COMMIT DEALLOCATE DESC DESCRIBE EXPLAIN GET"
    " HANDLER HELP LOCK RELEASE RESIGNAL ROLLBACK SAVEPOINT SELECT SHOW SIGNAL START"
    " TABLE UNLOCK USE VALUES WITH XA",
    WRITES: "ALTER BINLOG CACHE CHANGE CLONE CREATE FLUSH IMPORT INSERT KILL OPTIMIZE"
    " PRELOAD RENAME REPAIR RESET RESTART SET SHUTDOWN STOP UPDATE",
    DESTROYS: "DELETE DROP PURGE REPLACE TRUNCATE",
    GRANTS: "GRANT REVOKE",
    RUNS: "CALL DO EXECUTE INSTALL LOAD PREPARE UNINSTALL SOURCE SYSTEM",
}
SQL_SERVER = {
    READS: "BEGIN BREAK CLOSE COMMIT CONTINUE DEALLOCATE DECLARE END FETCH GET GO GOTO"
    " IF OPEN PRINT RAISERROR READTEXT RETURN ROLLBACK SAVE SELECT THROW USE WAITFOR"
    " WHILE WITH",
    WRITES: "ADD ALTER BACKUP BULK CHECKPOINT CREATE DBCC DISABLE ENABLE INSERT KILL"
    " MERGE RECEIVE RECONFIGURE RENAME SEND SET SHUTDOWN UPDATE UPDATETEXT WRITETEXT",
    DESTROYS: "DELETE DROP RESTORE TRUNCATE",
    GRANTS: "DENY GRANT REVERT REVOKE SETUSER",
    RUNS: "EXEC EXECUTE",
}
LISTED = {
    (head, does)
    for grammar in (POSTGRESQL, MYSQL, SQL_SERVER)
    for does, heads in grammar.items()
    for head in heads.split()
}
# Of longer forms, those whose first word alone tells less.
LONGER = {
    ("ALTER SYSTEM SET x", RUNS),
    ("ALTER ROLE x SUPERUSER", GRANTS),
    ("ALTER USER x", GRANTS),
    ("ALTER LOGIN x", GRANTS),
    ("ALTER DEFAULT PRIVILEGES x", GRANTS),
    ("ALTER FUNCTION f() x", RUNS),
    ("CREATE USER x", GRANTS),
    ("CREATE FUNCTION f() x", RUNS),
    ("CREATE OR REPLACE FUNCTION f() x", RUNS),
    ("CREATE OR ALTER PROCEDURE p x", RUNS),
    ("CREATE TRIGGER t x", RUNS),
    ("CREATE EXTENSION x y", RUNS),
    ("CREATE ASSEMBLY x y", RUNS),
    ("EXECUTE AS LOGIN = 'x'", GRANTS),
    ("EXPLAIN ANALYZE DELETE FROM t", RUNS),
    ("EXPLAIN ANALYZE DELETE FROM t", DESTROYS),
    ("LOAD DATA INFILE 'x' INTO TABLE t", WRITES),
    ("LOAD 'library'", RUNS),
    ("RESET MASTER", DESTROYS),
    ("SET ROLE admin", GRANTS),
    ("SET SESSION AUTHORIZATION x", GRANTS),
    ("SET PASSWORD = 'x'", GRANTS),
    ("COPY t TO PROGRAM 'x'", RUNS),
    ("COPY t FROM\nPROGRAM 'x'", RUNS),
    ("CREATE FUNCTION f RETURNS STRING SONAME 'x.so'", RUNS),
    ("CREATE FUNCTION f() RETURNS int SECURITY DEFINER x", GRANTS),
    ("ALTER TABLE t OWNER TO x", GRANTS),
    ("DO $$ BEGIN x; END $$", RUNS),
    ("BEGIN; DELETE FROM t; COMMIT", DESTROYS),
    ("IF EXISTS (SELECT 1) DROP TABLE t", DESTROYS),
    ("SELECT 1\nGO\nDROP TABLE t\nGO", DESTROYS),
    ("SELECT 1 /*! ; DROP TABLE t */", "MySQL runs what a comment contains"),
    ("SELECT 1 /*M!100100 ; DROP TABLE t */", DESTROYS),
    ("SELECT 1 --1 ; DROP TABLE t", DESTROYS),
    ("SELECT '\\' ; DROP TABLE t -- '", DESTROYS),
    ("SELECT `a` FROM t; DROP TABLE t", DESTROYS),
    ("SELECT * FROM t INTO OUTFILE '/x'", "Writes a file"),
    ("SELECT 1 INTO DUMPFILE '/x'", "Writes a file"),
    ("EXEC xp_cmdshell 'x'", RUNS),
    ("WITH x AS MATERIALIZED (DELETE FROM t) SELECT `a` FROM x", DESTROYS),
}


def run(statement):
    return kinds.show("run_sql", sql=statement)


@pytest.mark.parametrize(("head", "does"), sorted(LISTED))
def test_each_statement_of_a_grammar_has_its_effect_in_the_table(head, does):
    assert sql_heads.HEADS[head] == does
    shown = run(f"{head} x")
    if does != READS and shown.uninspectable:
        assert does in loud(shown)
    assert does != READS or not {WRITES, DESTROYS, GRANTS, RUNS} & set(loud(shown))


@pytest.mark.parametrize(("statement", "does"), sorted(LONGER))
def test_what_is_not_decoded_still_says_what_it_does(statement, does):
    shown = run(statement)
    assert does in loud(shown)
    assert [one.argument for one in shown.uninspectable] == ["sql"]
    assert rows(shown)["sql"].cell.text == statement


@pytest.mark.parametrize(
    "second",
    [
        *("DELETE FROM users WHERE 1=1", "DROP TABLE t", "UPDATE t SET a = 1"),
        *("EXEC xp_cmdshell 'x'", "EXECUTE p", "TRUNCATE TABLE t", "SHUTDOWN"),
        *("INSERT INTO t VALUES (1)", "GRANT ALL TO x", "DENY ALL TO x", "KILL 53"),
        *("ALTER LOGIN sa ENABLE", "CREATE LOGIN x", "RESTORE DATABASE x", "DBCC x"),
        *("BACKUP DATABASE x", "MERGE INTO t x", "SET ROWCOUNT 0", "REVERT", "USE x"),
        *("RECONFIGURE", "BULK INSERT t", "WAITFOR DELAY '1'", "GO\nDROP TABLE t"),
    ],
)
@pytest.mark.parametrize(
    "first",
    [
        *("SELECT 1", "SELECT * FROM t", "SELECT a FROM t WHERE b = 'x'", "SELECT (1)"),
        *("DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (1)", "SELECT *"),
        *("UPDATE t SET a = 1 WHERE id = 2", "DROP TABLE t", "SELECT 1 AS x"),
        *("ALTER TABLE t ADD c int", "SELECT a -- x", 'SELECT "a"', "SELECT [a]"),
        "WITH a AS (SELECT 1) DELETE FROM t WHERE id IN (SELECT 1)",
    ],
)
def test_a_second_statement_without_a_semicolon_is_not_decoded(first, second):
    for gap in ("\n", " \n "):
        shown = run(f"{first}{gap}{second}")
        assert [one.argument for one in shown.uninspectable] == ["sql"]
        assert "The statement was not decoded" in loud(shown)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a FROM t FOR UPDATE",
        "SELECT a AS update, b AS set FROM t",
        "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = 1",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "CREATE TABLE t (id int REFERENCES u ON DELETE SET NULL ON UPDATE CASCADE)",
        "ALTER TABLE t ALTER COLUMN c SET DEFAULT 1",
        "ALTER TABLE t ALTER COLUMN c DROP NOT NULL",
        "ALTER TABLE t ADD COLUMN a int, DROP COLUMN b",
        "DROP TABLE IF EXISTS t",
        "WITH a AS (SELECT 1) UPDATE t SET x = 1 WHERE t.id = 2",
        "WITH a AS (DELETE FROM t WHERE id = 1 RETURNING 1) DELETE FROM u WHERE id = 2",
        "SELECT 'DELETE FROM t' AS a, count(*) FROM t -- DELETE FROM t",
        "SELECT a\nFROM t\nWHERE b IN ('x', 'y')\nORDER BY a",
    ],
)
def test_one_statement_stays_decoded(statement):
    shown = run(statement)
    assert shown.uninspectable == ()
    assert "SQL Server may read it otherwise" in shown.views[0].note


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET admin = true",
            "Overwrites rows that exist already",
        ),
        (
            "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE admin = 1",
            "Overwrites rows that exist already",
        ),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = 1",
            "Changes rows that exist already",
        ),
        ("SELECT * INTO n FROM t", "Writes the result into a new table"),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", "Replaces what has this name"),
        (
            "SELECT pg_terminate_backend(1)",
            "Calls pg_terminate_backend, which does more than read",
        ),
        ('SELECT "setval"(1)', "Calls setval, which does more than read"),
        (
            "SELECT pg_catalog.lo_export (1, 'x')",
            "Calls lo_export, which does more than read",
        ),
        (
            "SELECT * FROM dblink('x', 'y') AS t(a int)",
            "Calls dblink, which does more than read",
        ),
    ],
)
def test_what_changes_rows_or_more_is_never_quiet(statement, said):
    assert said in loud(run(statement))


def test_what_replaces_rows_names_the_columns_that_it_writes():
    shown = run("INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = NULL")
    found = {row.label: row.cell.text for row in shown.views[0].rows}
    assert found["Writes"] == "b, a"


@pytest.mark.parametrize(
    "condition",
    [
        *("1=1", "true", "NOT false", "2 > 1", "id = id", "(id) = id", "id >= id"),
        *("id IS NULL OR id IS NOT NULL", "id = 1 OR id <> 1", "NOT id = 1 OR id = 1"),
        *("id < 5 OR id >= 5", "id LIKE '%'", "id = 1 OR 2 > 1", "id = 1 OR true"),
        *("id IS NOT DISTINCT FROM id", "lower(a) = lower(a)", "1 = 1 AND id = id"),
        *("EXISTS (SELECT 1)", "EXISTS (SELECT id FROM u WHERE u.a = 1)"),
        *(
            "CASE WHEN true THEN true END",
            "NOT (id <> id)",
            "id = 1 OR (a = a OR b = 2)",
        ),
    ],
)
def test_a_condition_that_holds_for_every_row_is_called_out(condition):
    assert sql.EVERY_ROW in loud(run(f"DELETE FROM t WHERE {condition}"))
    assert sql.EVERY_ROW in loud(run(f"UPDATE t SET a = 1 WHERE {condition}"))


@pytest.mark.parametrize(
    "condition",
    [
        *("id = 1", "id = 1 AND a = a", "a = 1 OR b = 2", "id = 1 OR 1 = 2"),
        *("EXISTS (SELECT 1 FROM u WHERE u.id = t.id)", "name LIKE '%a%'", "NOT a = 1"),
        *(
            "id IN (SELECT id FROM u)",
            "id IS NULL",
            "a <> 1 AND a = 1",
            "a < 1 OR a > 2",
        ),
    ],
)
def test_a_condition_that_selects_rows_is_not(condition):
    assert sql.EVERY_ROW not in loud(run(f"DELETE FROM t WHERE {condition}"))


@pytest.mark.parametrize(
    "statement",
    [
        "MERGE INTO t USING s ON 1 = 1 WHEN MATCHED THEN DELETE",
        "UPDATE t SET a = 1 FROM u WHERE u.id = 3",
        "DELETE FROM t USING u WHERE u.id = 3",
    ],
)
def test_a_condition_on_another_table_selects_no_rows(statement):
    assert sql.EVERY_ROW in loud(run(statement))


def test_what_other_databases_read_otherwise_is_said():
    said = "MySQL and SQL Server may read it otherwise"
    assert any(said in tag for tag in tags(run('SELECT "a" || b FROM t')))
    assert said in run("SELECT `a`").uninspectable[0].reason

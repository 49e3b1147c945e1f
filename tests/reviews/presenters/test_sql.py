"""Kind, tables, condition; what databases read differently is undecoded."""

from __future__ import annotations

import logging

import pytest

from reviews.presenters import sql
from tests.reviews.presenters import kinds
from tests.reviews.presenters.kinds import loud, rows, tags


def run(statement, before=None):
    return kinds.show("run_sql", sql=statement, before=before)


def test_kind_tables_columns_and_condition_are_rows():
    shown = run("UPDATE a.orders SET state = 'x' WHERE id IN (1, 2)")
    found = {row.label: row.cell.text for row in shown.views[0].rows}
    assert found == {
        "Kind": "UPDATE",
        "Tables": "a.orders",
        "Writes": "state",
        "Only where": "id IN (1, 2)",
    }
    assert shown.uninspectable == ()


@pytest.mark.parametrize(
    ("statement", "tag"),
    [
        ("DELETE FROM t", sql.EVERY_ROW),
        ("DELETE FROM t WHERE 1 = 1", sql.EVERY_ROW),
        ("DELETE FROM t WHERE id = 1 OR true", sql.EVERY_ROW),
        ("DELETE FROM t WHERE id = id", sql.EVERY_ROW),
        ("UPDATE t SET a = (SELECT 1 FROM c WHERE c.id = 2)", sql.EVERY_ROW),
        ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", sql.EVERY_ROW),
        ("DELETE FROM t WHERE id = 1", "Deletes rows"),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
            "Deletes rows",
        ),
        ("DROP TABLE t", "Drops"),
        ("TRUNCATE t", "Empties a table"),
        ("ALTER TABLE t DROP COLUMN c", "Drops a column or more"),
        ("UPDATE t SET a = NULL WHERE id = 1", "Empties 1 column"),
        ("SELECT 1; DROP TABLE t", "2 statements in one"),
        ("SELECT pg_terminate_backend(1)", "Calls a function of the database"),
    ],
)
def test_what_is_always_called_out(statement, tag):
    assert tag in loud(run(statement))


def test_a_statement_with_a_condition_is_not_called_unbounded():
    assert sql.EVERY_ROW not in loud(run("DELETE FROM t WHERE id = 1"))
    assert sql.EVERY_ROW not in loud(run("SELECT * FROM t"))


def test_personal_columns_are_counted_by_name():
    assert "Personal data: 2 columns" in tags(
        run("INSERT INTO t (id, email, birth_date) VALUES (1, 'x', 'y')")
    )


def test_rows_and_keys_are_shown_only_as_the_tool_declared_them():
    shown = run("DELETE FROM t", before={"rows": 12408, "keys": list("abcdefg")})
    group = shown.views[-1]
    assert [row.cell.text for row in group.rows] == ["12,408", *"abcde"]
    assert "12,408 rows, as declared by the tool" in loud(shown)
    assert shown.now == ()
    assert len(run("DELETE FROM t").views) == 1


@pytest.mark.parametrize(
    "statement",
    [
        *("", "selct 1", "COPY t TO PROGRAM 'rm'", "GRANT ALL ON t TO x", "VACUUM"),
        *("DO $$ x $$", "EXPLAIN DELETE FROM t", "CALL f()", "SET ROLE admin", "BEGIN"),
        *(
            "SELECT 1 /*! ; DROP TABLE t */",
            "SELECT '\\' ; DROP TABLE t -- '",
            "SELECT `a`",
        ),
        *("SELECT 1 --x", "SELECT 1 # x", "SELECT\u00a01", "(" * 3000, "SELECT 1\x00"),
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'DELETE FROM t'",
    ],
)
def test_what_is_read_differently_or_not_at_all_is_undecoded(statement):
    shown = run(statement)
    assert "The statement was not decoded" in loud(shown)
    assert [one.argument for one in shown.uninspectable] == ["sql"]
    assert rows(shown)["sql"].cell.text == statement


def test_no_log_quotes_a_statement(caplog):
    with caplog.at_level(logging.DEBUG):
        run("EXPLAIN DELETE FROM secrets")
    assert "secrets" not in caplog.text

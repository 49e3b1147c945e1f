"""Rows by hand, a few and many: the same rows, in their order."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from psycopg.types.json import Jsonb

from journal.bulk_insert import insert_rows

COLUMNS = {"said": "text", "bytes": "bytea", "at": "timestamptz", "more": "jsonb"}
AT = datetime(2026, 3, 1, 9, 30, 0, 120, tzinfo=UTC)
# What ends a string, an array or a statement where it is not taken as a value.
WORDS = (
    "",
    "NULL",
    "{}",
    '"',
    "'",
    "\\",
    "a,b",
    "%s",
    "\u202e\u00e9\U0001f600",
    "x;--",
)
MANY = 60


@pytest.fixture
def table(db: None) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMPORARY TABLE kept (id serial, said text, bytes bytea,"
            " at timestamptz, more jsonb, same int) ON COMMIT DROP"
        )
    return "kept"


def rows(count: int) -> list[list[Any]]:
    words = [WORDS[n % len(WORDS)] for n in range(count)]
    return [
        [word, bytes([n, 0, 39, 92]), AT + timedelta(seconds=n), Jsonb({"w": [word]})]
        for n, word in enumerate(words)
    ]


@pytest.mark.parametrize("count", [1, 19, 20, MANY])
def test_every_value_arrives_as_it_is_and_in_its_place(table: str, count: int) -> None:
    given = rows(count)
    made = insert_rows(table, COLUMNS, given, returning="id", same={"same": "1 + 1"})
    assert made == [(n + 1,) for n in range(count)]
    with connection.cursor() as cursor:
        cursor.execute("SELECT said, bytes, at, more, same FROM kept ORDER BY id")
        found = cursor.fetchall()
    assert [(said, bytes(raw), at) for said, raw, at, *_ in found] == [
        (said, raw, at) for said, raw, at, _ in given
    ]
    assert [json.loads(more) for _, _, _, more, _ in found] == [
        more.obj for *_, more in given
    ]
    assert {same for *_, same in found} == {2}


@pytest.mark.parametrize("count", [1, MANY])
def test_what_is_missing_stays_missing(table: str, count: int) -> None:
    insert_rows(table, {"said": "text", "at": "timestamptz"}, [[None, None]] * count,
           returning="id")  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM kept WHERE said IS NULL AND at IS NULL")
        assert cursor.fetchone() == (count,)


def test_many_are_one_statement(table: str, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        insert_rows(table, COLUMNS, rows(MANY), returning="id")

"""Statements by hand: values are bound by the server, and PostgreSQL prepares each text
once a connection."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import (
    DataError,
    IntegrityError,
    NotSupportedError,
    OperationalError,
    connection,
    transaction,
)
from django.db.transaction import TransactionManagementError

from journal import clock, statements
from journal.models import Heartbeat
from journal.statements import Statement, run_statement
from policies.models import Queue

pytestmark = pytest.mark.django_db

HOSTILE = "'; DROP TABLE journal_heartbeat; -- %s %(name)s $1"


def prepared() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        return [text for (text,) in cursor.fetchall()]


def test_a_name_is_one_parameter_wherever_it_stands() -> None:
    both = Statement("SELECT %(a)s::text, %(b)s::text, %(a)s::text")
    assert both.text == "SELECT $1::text, $2::text, $1::text"
    assert both.fetch_all(a=HOSTILE, b="") == [(HOSTILE, "", HOSTILE)]


def test_what_each_way_of_running_returns() -> None:
    some = Statement("SELECT n FROM generate_series(1, %(count)s) AS n")
    assert some.fetch_all(count=2) == [(1,), (2,)]
    assert some.fetch_first(count=2) == (1,)
    assert some.fetch_first(count=0) is None
    assert some.fetch_one(count=1) == (1,)
    with pytest.raises(LookupError):
        some.fetch_one(count=0)
    assert some.execute(count=3) == 3


def test_a_missing_value_raises() -> None:
    with pytest.raises(KeyError):
        Statement("SELECT %(a)s::text").fetch_all()


def test_a_text_is_prepared_once_and_those_of_the_orm_are_not() -> None:
    asked = Statement("SELECT %(a)s::text AS prepared_once")
    for word in "abc":
        asked.fetch_all(a=word)
    list(Queue.objects.filter(name="prepared_once"))
    assert [text for text in prepared() if "prepared_once" in text] == [asked.text]


@pytest.mark.django_db(transaction=True)
def test_a_connection_keeps_so_many_statements_and_drops_the_oldest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, two, three = (Statement(f"SELECT {n} AS kept_{n}") for n in (1, 2, 3))
    monkeypatch.setattr(statements, "PREPARED_MAX", 2)
    connection.close()  # the next connection has prepared nothing
    for each in (one, two, one, three, three):
        assert each.fetch_one() == (int(each.text[7]),)
    assert sorted(prepared()) == [one.text, three.text]
    assert two.fetch_one() == (2,)


def test_a_value_can_be_null_and_each_type_is_prepared_apart() -> None:
    asked = Statement("SELECT %(a)s::bigint AS of_type")
    for value in (1, 2**40, None, 2):
        assert asked.fetch_one(a=value) == (value,)
    assert [text for text in prepared() if "of_type" in text] == [asked.text] * 3


def test_a_statement_without_rows_returns_how_many_it_changed() -> None:
    for name in "ab":
        Heartbeat.objects.create(name=name, at=clock.now())
    assert Statement("UPDATE journal_heartbeat SET name = name || 'x'").execute() == 2
    assert Statement("DELETE FROM journal_heartbeat").fetch_all() == []


@pytest.mark.django_db(transaction=True)
def test_it_begins_the_transaction_that_holds_it() -> None:
    change = Statement(
        "INSERT INTO journal_heartbeat (name, at) VALUES (%(name)s, now())"
    )
    with transaction.atomic(durable=True):
        change.execute(name="kept back")
        transaction.set_rollback(True)
    assert not Heartbeat.objects.filter(name="kept back").exists()
    change.execute(name="kept")
    connection.close()
    assert Heartbeat.objects.filter(name="kept").exists()


@pytest.mark.django_db(transaction=True)
def test_a_lost_connection_is_an_operational_error_and_the_next_call_works() -> None:
    asked = Statement("SELECT %(a)s::text")
    asked.fetch_one(a="one")
    with pytest.raises(OperationalError):
        Statement("SELECT pg_terminate_backend(pg_backend_pid())").fetch_one()
    connection.close_if_unusable_or_obsolete()
    assert asked.fetch_one(a="two") == ("two",)


def test_a_column_that_changed_its_type_fails_one_call() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE changing (value varchar(4)) ON COMMIT DROP")
        run_statement("SELECT value FROM changing", [])
        cursor.execute("ALTER TABLE changing ALTER value TYPE text")
    with pytest.raises(NotSupportedError), transaction.atomic():
        run_statement("SELECT value FROM changing", [])
    assert run_statement("SELECT value FROM changing", []).rows == []


def test_a_value_that_the_database_cannot_hold_is_a_data_error() -> None:
    with pytest.raises(DataError), transaction.atomic():
        Statement("SELECT %(a)s::text").fetch_one(a="a\x00b")


def test_it_is_counted_like_every_query(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1) as caught:
        Statement("SELECT %(a)s::text").fetch_all(a=HOSTILE)
    (query,) = caught.captured_queries
    with connection.cursor() as cursor:  # what was caught can be run as it stands
        cursor.execute(query["sql"])
        assert cursor.fetchone() == (HOSTILE,)


def test_errors_are_those_of_django_and_break_the_transaction() -> None:
    Heartbeat.objects.create(name="one", at="2026-01-01T00:00Z")
    again = Statement(
        "INSERT INTO journal_heartbeat (name, at) VALUES (%(name)s, now())"
    )
    with pytest.raises(IntegrityError), transaction.atomic():
        again.execute(name="one")
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            again.execute(name="two")

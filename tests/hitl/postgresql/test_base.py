"""A persistent connection that the server may have closed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from typing import Any, cast
from zoneinfo import ZoneInfo

import psycopg
import pytest
from django.db import close_old_connections, connection
from django.db.utils import OperationalError

from hitl.postgresql.base import has_input
from journal import clock
from journal.statements import Statement
from tests.stack import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def other() -> Iterator[psycopg.Connection[Any]]:
    """An operator's connection to the same database."""
    given = connection.get_connection_params()
    del given["cursor_factory"]
    with psycopg.connect(**given, autocommit=True) as found:
        yield found


def begin_request() -> Any:
    """What Django does at the start of a request; the driver's connection."""
    close_old_connections()
    clock.now()
    return connection.connection


def close_by_server(other: psycopg.Connection[Any], victim: Any) -> None:
    other.execute("SELECT pg_terminate_backend(%s)", [victim.info.backend_pid])
    wait_until(lambda: has_input(victim), 10)


def test_a_request_asks_no_question_of_an_idle_connection() -> None:
    first = begin_request()
    asked: list[str] = []
    first.cursor_factory = spy_on_cursors(first, asked)
    assert begin_request() is first
    assert asked == []


def spy_on_cursors(target: Any, asked: list[str]) -> Any:
    class Cursor(target.cursor_factory):  # type: ignore[misc]
        def execute(self, query: Any, *rest: Any, **options: Any) -> Any:
            asked.append(str(query))
            return super().execute(query, *rest, **options)

    return Cursor


def test_a_connection_that_the_server_closed_is_replaced(
    other: psycopg.Connection[Any],
) -> None:
    first = begin_request()
    close_by_server(other, first)
    second = begin_request()
    assert second is not first
    assert second.info.backend_pid != first.info.backend_pid


def test_a_notice_is_no_reason_to_give_a_connection_up(
    other: psycopg.Connection[Any],
) -> None:
    first = begin_request()
    with connection.cursor() as cursor:
        cursor.execute("LISTEN bell")
    other.execute("NOTIFY bell")
    wait_until(lambda: has_input(first), 10)
    assert begin_request() is first


def test_a_connection_that_failed_in_a_request_is_replaced_by_the_next(
    other: psycopg.Connection[Any],
) -> None:
    first = begin_request()
    cast(Any, connection).health_check_done = True
    close_by_server(other, first)
    with pytest.raises(OperationalError):
        clock.now()
    assert begin_request() is not first


@pytest.mark.parametrize(
    ("stored", "year"),
    [
        ("0044-03-15 12:00:00+00 BC", 2),
        ("-infinity", 2),
        ("0001-01-01 00:00:00+00", 2),
        ("infinity", 9998),
        ("294276-01-01 00:00:00+00", 9998),
        ("9999-12-31 23:59:59+00", 9998),
        ("2026-11-27 12:00:00+00", 2026),
    ],
)
def test_every_stored_time_is_read_and_converts_to_every_zone(
    stored: str, year: int
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [stored])
        (found,) = cursor.fetchone()
    assert (found.year, found.tzinfo) == (year, UTC)
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        assert abs(found.astimezone(ZoneInfo(zone)).year - year) <= 1


def test_a_prepared_statement_reads_such_a_time_too() -> None:
    (found,) = Statement("SELECT '-infinity'::timestamptz").fetch_one()
    assert found.year == 2


def test_each_session_has_the_settings_of_the_product() -> None:
    begin_request()
    wanted = connection.settings_dict["OPTIONS"]["session_settings"]
    # Those of TCP read 0 on a socket of the same host.
    names = [name for name in wanted if not name.startswith("tcp_")]
    shown = Statement(
        "SELECT name, setting FROM pg_settings WHERE name = ANY(%(names)s)"
    )
    assert dict(shown.fetch_all(names=names)) == {name: wanted[name] for name in names}
    assert "lock_timeout" in names

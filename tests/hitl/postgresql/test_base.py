"""A persistent connection that the server may have closed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import psycopg
import pytest
from django.db import close_old_connections, connection
from django.db.utils import OperationalError

from hitl.postgresql.base import has_input
from journal import clock
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

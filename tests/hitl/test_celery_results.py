"""The database connection of a worker's process, between tasks."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from celery.fixups.django import DjangoWorkerFixup
from django.db import connection

from hitl import celery_workarounds
from hitl.celery import app

pytestmark = pytest.mark.django_db(transaction=True)


def backend() -> int:
    """Which process of the server serves us."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def task(*, eager: bool = False) -> Any:
    return SimpleNamespace(request=SimpleNamespace(is_eager=eager))


def one(state: str = "SUCCESS") -> int:
    """A task as a worker runs it: Celery's own steps around it, and ours."""
    theirs = DjangoWorkerFixup(app)
    theirs.worker = SimpleNamespace(pool_cls="prefork")
    theirs.on_task_prerun(sender=task())
    celery_workarounds.check_connections(task())
    found = backend()
    theirs.on_task_postrun(sender=task())
    celery_workarounds.release_connections(task(), state)
    return found


def test_tasks_share_one_connection() -> None:
    assert len({one() for _ in range(5)}) == 1


def test_celery_still_closes_the_connection_after_each_task() -> None:
    with Celery("other", set_as_current=False) as other:
        theirs = DjangoWorkerFixup(other)
    backend()
    theirs.on_task_postrun(sender=task())
    assert connection.connection is None


def test_who_raised_leaves_none_behind() -> None:
    first = one("FAILURE")
    assert connection.connection is None
    assert one() != first


def test_a_connection_that_broke_between_two_tasks_is_opened_anew() -> None:
    first = one()
    with closing(connection.copy()) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
    assert one() != first


def test_a_task_that_is_called_in_place_leaves_its_callers_connection() -> None:
    first = backend()
    celery_workarounds.check_connections(task(eager=True))
    celery_workarounds.release_connections(task(eager=True), "FAILURE")
    assert backend() == first

"""Who listens hears of what was committed, and of nothing else."""

from __future__ import annotations

from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection, transaction

from journal import notify

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def listening():
    """The subjects that another connection hears, when asked."""
    connection.ensure_connection()
    info = connection.get_connection_params()
    info = {
        k: info[k] for k in ("dbname", "user", "password", "host", "port") if k in info
    }
    with psycopg.connect(**info, autocommit=True) as other:
        other.execute(f"LISTEN {notify.CHANNEL}")

        def heard():
            """Whatever was committed before the listener's own word to itself."""
            other.execute("SELECT pg_notify(%s, 'end')", [notify.CHANNEL])
            payloads = (n.payload for n in other.notifies())
            return list(iter(payloads.__next__, "end"))

        yield heard


def test_an_announcement_is_heard_after_the_commit_only():
    with listening() as heard:
        with transaction.atomic():
            notify.announce("r-7")
            assert heard() == []
        assert heard() == ["r-7"]


def test_a_rolled_back_announcement_is_not_heard():
    with listening() as heard:
        with transaction.atomic():
            notify.announce("r-7")
            transaction.set_rollback(True)
        assert heard() == []

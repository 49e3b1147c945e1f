"""The harness itself: what it empties comes back as it was after migrating."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError, connection, transaction

from journal import high_water_mark, log, restore_epochs
from journal.clock import now
from journal.models import LogRecord
from policies.models import Person
from tests import emptying

pytestmark = pytest.mark.django_db(transaction=True)


def record() -> None:
    with transaction.atomic():
        actor = log.Actor("system", "test")
        log.append("test.happened", actor=actor, at=now())


def test_the_log_and_people_are_emptied() -> None:
    record()
    Person.objects.create_user("rita")
    emptying.empty()
    assert not LogRecord.objects.exists()
    assert not Person.objects.exists()


def test_what_migrations_made_keeps_its_ids() -> None:
    before = set(Permission.objects.values_list("pk", "content_type"))
    types = set(ContentType.objects.values_list("pk", "model"))
    Permission.objects.all().delete()
    emptying.empty()
    assert set(Permission.objects.values_list("pk", "content_type")) == before
    assert set(ContentType.objects.values_list("pk", "model")) == types


def test_a_mark_that_a_process_writes_late_halts_nobody() -> None:
    record()
    restore_epochs.advance_mark()
    late = high_water_mark.read_mark()
    assert late is not None
    assert not restore_epochs.find_halt_reason()
    emptying.teardown(None)
    emptying.begin_epoch()
    high_water_mark.write_mark(late)
    assert not restore_epochs.find_halt_reason()
    record()
    restore_epochs.advance_mark()


def test_the_log_is_append_only_again_afterwards() -> None:
    emptying.empty()
    record()
    with pytest.raises(IntegrityError, match="append-only"):
        LogRecord.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("SHOW session_replication_role")
        assert cursor.fetchone() == ("origin",)


def test_a_connection_that_was_interrupted_is_given_up() -> None:
    connection.ensure_connection()
    interrupted = connection.connection
    interrupted.pgconn.send_query(b"SELECT pg_sleep(600)")
    emptying.close_interrupted_connection()
    assert interrupted.closed
    with connection.cursor() as cursor:  # another connection
        cursor.execute("SELECT 1")
        emptying.close_interrupted_connection()
        assert cursor.fetchone() == (1,)

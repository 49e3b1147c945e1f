"""`manage.py migrate` on tables that others use."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from hitl.management.commands import migrate

pytestmark = pytest.mark.django_db(transaction=True)


class Table:
    """`django_session`, which a transaction of another connection reads."""

    def __init__(self) -> None:
        self.is_held, self.leave = threading.Event(), threading.Event()

    def read(self) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM django_session")
            self.is_held.set()
            self.leave.wait(60)
        connection.close()


@pytest.fixture
def table() -> Iterator[Table]:
    held = Table()
    reader = threading.Thread(target=held.read)
    reader.start()
    held.is_held.wait(60)
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 50")
    yield held
    held.leave.set()
    reader.join()
    connection.close()
    call_command("migrate", "sessions", verbosity=0)


class Notes(io.StringIO):
    """What the command prints; after the second note the reader leaves."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table

    def write(self, text: str) -> int:
        if "Attempt 2" in text:
            self.table.leave.set()
        return super().write(text)


def is_applied() -> bool:
    return ("sessions", "0001_initial") in MigrationRecorder(
        connection
    ).applied_migrations()


def test_a_migration_is_repeated_until_its_table_is_free(table: Table) -> None:
    notes = Notes(table)
    call_command("migrate", "sessions", "zero", verbosity=0, stderr=notes)
    assert "Attempt 2: a table is in use" in notes.getvalue()
    assert not is_applied()


def test_the_last_attempt_ends_with_a_remedy(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "ATTEMPTS", 2)
    with pytest.raises(CommandError, match="Run the command again"):
        call_command("migrate", "sessions", "zero", verbosity=0, stderr=io.StringIO())
    assert is_applied()


def test_a_migration_applied_in_part_is_not_repeated(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django.db.migrations.Migration.atomic", False)
    notes = io.StringIO()
    with pytest.raises(OperationalError, match="lock timeout"):
        call_command("migrate", "sessions", "zero", verbosity=0, stderr=notes)
    assert not notes.getvalue()

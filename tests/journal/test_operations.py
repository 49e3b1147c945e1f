"""An operation is one durable transaction, and declares its facts."""

from __future__ import annotations

import inspect

import pytest
from django.db import connection, transaction

from journal import clock, log, operations
from journal.models import LogRecord
from journal.operations import Operation, operation


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """A registry without the product's operations, which these are not."""
    registered: dict[str, Operation] = {}
    monkeypatch.setattr(operations, "OPERATIONS", registered)
    return registered


def append_record():
    log.append("case.noted", actor=log.SYSTEM, at=clock.now())


def append_and_fail():
    append_record()
    raise LookupError


@pytest.mark.django_db(transaction=True)
def test_an_operation_commits_what_it_wrote():
    operation(logs="case.noted")(append_record)()
    assert not connection.in_atomic_block
    assert LogRecord.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_exception_undoes_what_was_written():
    with pytest.raises(LookupError):
        operation(logs="case.noted")(append_and_fail)()
    assert not LogRecord.objects.exists()


@pytest.mark.django_db
def test_an_operation_is_refused_inside_a_transaction():
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        operation(logs="case.noted")(append_record)()
    assert not LogRecord.objects.exists()


def test_an_operation_keeps_the_name_and_the_signature_of_its_function():
    made = operation(logs="case.noted")(append_record)
    assert made.__qualname__ == "append_record"
    assert inspect.unwrap(made) is append_record


def test_the_facts_are_registered_by_the_dotted_name(registry):
    operation(locks="case", writes="Case", logs="case.noted", after="mail")(
        append_record
    )
    name = f"{__name__}.append_record"
    facts = Operation(name, (name,), "case", "Case", "case.noted", "mail")
    assert registry == {name: facts}


def test_a_private_function_names_what_a_reader_calls(registry):
    operation(entry="note_case, cases.close.close_case")(append_record)
    (declared,) = registry.values()
    assert declared.entries == (f"{__name__}.note_case", "cases.close.close_case")

"""Exports: what fits and nothing more, inert, in parts, and once."""

from __future__ import annotations

import codecs
import csv
import io
import json
from typing import Any

import pytest
from django.db import connection

from desk.log import exports
from hitl import tasks
from journal import sequencer
from journal.errors import InvalidArgs, NotFound, NotPermitted
from journal.models import LogRecord, OutboxMessage
from policies.models import Person
from reviews.choices import ExportStatus
from reviews.models import Export, ExportPart
from tests.conftest import Gate
from tests.factories import decide, propose


def fresh(person: Person) -> Person:
    return Person.objects.get(pk=person.pk)


def written(gate: Gate, file_format: str = "csv", query: str = "") -> str:
    export = exports.create_export(
        person=fresh(gate.otto), file_format=file_format, query=query
    )
    assert exports.write_export(export.pk)
    done = exports.load_finished_export(gate.otto, export.pk)
    body = b"".join(done.parts.stream_bodies())
    assert body.startswith(codecs.BOM_UTF8) is (file_format == "csv")
    return body.decode("utf-8-sig")


def test_a_csv_has_every_record_that_fits_and_says_what_happened(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita, "reject", reason_code="unsafe")
    rows = list(csv.DictReader(io.StringIO(written(gate, query="kind=decision"))))
    assert [row["what_happened"] for row in rows] == ["Rita Example rejected"]
    assert rows[0]["request"] == request.pk
    assert rows[0]["action_hash"] == request.action_hash


@pytest.mark.django_db(transaction=True)
def test_a_json_line_is_the_leaf_itself_with_its_place(gate: Gate) -> None:
    propose(gate.agent)
    sequencer.sequence_records()
    newest = LogRecord.objects.order_by("-pk")[0]
    lines = written(gate, "jsonl").splitlines()
    last = json.loads(lines[-1])
    assert len(lines) == LogRecord.objects.filter(pk__lte=newest.pk).count()
    assert last["leaf"].encode() == bytes(newest.leaf)
    assert last["seq"] == newest.position.seq


def test_cells_are_never_formulas_and_hide_nothing() -> None:
    for said in ("=1+1", "+1", "-1", "@SUM(A1)"):
        assert exports.format_cell(said) == f"'{said}"
    assert "U+202E" in exports.format_cell("safe\u202e.exe")
    assert "U+000D" in exports.format_cell("\r=1")
    assert exports.format_cell("  =1+1") == "'  =1+1"
    assert exports.format_cell("\uff1d1+1") == "'\uff1d1+1"
    assert exports.format_cell("a\u200bb") == "a\u27e6U+200B\u27e7b"
    assert (
        exports.format_cell("p\u0430y")
        == "p\u0430y \u27e6mixed alphabets: \u0430 is Cyrillic\u27e7"
    )
    assert exports.format_cell("Refund 49.00") == "Refund 49.00"
    assert exports.format_cell("") == ""


def test_a_killed_job_goes_on_where_it_was(gate: Gate, monkeypatch) -> None:
    monkeypatch.setattr(exports, "PART_SIZE", 3)
    propose(gate.agent)
    export = exports.create_export(person=fresh(gate.otto), file_format="csv", query="")
    assert exports._write_part(export.pk)
    before = ExportPart.objects.get().number
    assert exports.write_export(export.pk)
    export.refresh_from_db()
    assert before == 0
    assert export.status == ExportStatus.DONE
    rows = list(
        csv.DictReader(
            io.StringIO(b"".join(export.parts.stream_bodies()).decode("utf-8-sig"))
        )
    )
    numbers = [int(row["record"]) for row in rows]
    assert numbers == sorted(set(numbers))
    assert len(rows) == export.rows == export.rows_in_all


def test_what_one_delivery_cannot_do_is_promised_again(gate: Gate, monkeypatch) -> None:
    monkeypatch.setattr(exports, "BUDGET_S", -1.0)
    monkeypatch.setattr(exports, "PART_SIZE", 1)
    propose(gate.agent)
    export = exports.create_export(
        person=fresh(gate.otto), file_format="jsonl", query=""
    )
    promises = OutboxMessage.objects.filter(subject=export.pk, done_at=None)
    deliveries = 0
    while promise := promises.first():
        tasks.write_export(promise.pk)
        deliveries += 1
    export.refresh_from_db()
    assert deliveries > 2
    assert export.status == ExportStatus.DONE


@pytest.mark.parametrize(
    ("file_format", "size"),
    [("csv", len(",".join(exports.COLUMNS)) + 2 + 3), ("jsonl", 0)],
)
def test_of_no_record_there_is_a_file_as_well(
    gate: Gate, client: Any, file_format: str, size: int
) -> None:
    query = "kind=decision&after=2099-01-01"
    export = exports.create_export(
        person=fresh(gate.otto), file_format=file_format, query=query
    )
    assert exports.write_export(export.pk)
    client.force_login(gate.otto, "django.contrib.auth.backends.ModelBackend")
    page = client.get("/log/exports/").content.decode()
    link = f"/log/exports/{export.pk}/"
    assert f'href="{link}"' in page
    file = client.get(link)
    body = b"".join(file.streaming_content)
    assert (file.status_code, len(body)) == (200, size)
    text = body.decode("utf-8-sig")
    assert text == (f"{','.join(exports.COLUMNS)}\r\n" if size else "")
    export.refresh_from_db()
    assert (export.rows, export.size) == (0, size)
    assert ExportPart.objects.count() == 1


def test_records_written_later_stay_out(gate: Gate) -> None:
    propose(gate.agent)
    export = exports.create_export(person=fresh(gate.otto), file_format="csv", query="")
    propose(gate.agent, customer="C-2")
    assert exports.write_export(export.pk)
    export.refresh_from_db()
    assert export.rows == export.rows_in_all


@pytest.mark.parametrize("name", ["rita", "sue", "adam", "owen"])
def test_only_auditors_export(gate: Gate, name: str) -> None:
    with pytest.raises(NotPermitted):
        exports.create_export(
            person=fresh(gate.people[name]), file_format="csv", query=""
        )
    assert not Export.objects.exists()


def test_a_right_taken_away_ends_the_job(gate: Gate) -> None:
    export = exports.create_export(person=fresh(gate.otto), file_format="csv", query="")
    gate.otto.groups.clear()
    assert exports.write_export(export.pk)
    export.refresh_from_db()
    assert export.status == ExportStatus.FAILED
    assert export.problem == exports.NOT_PERMITTED


def test_bad_input_names_the_field(gate: Gate, monkeypatch) -> None:
    with pytest.raises(InvalidArgs) as refused:
        exports.create_export(person=fresh(gate.otto), file_format="pdf", query="")
    assert [error["path"] for error in refused.value.errors] == ["format"]
    monkeypatch.setattr(exports, "MAX_RECORDS", 1)
    propose(gate.agent)
    with pytest.raises(InvalidArgs) as refused:
        exports.create_export(person=fresh(gate.otto), file_format="csv", query="")
    assert [error["path"] for error in refused.value.errors] == ["until"]


def test_nobody_fetches_anothers_file(gate: Gate) -> None:
    export = exports.create_export(person=fresh(gate.otto), file_format="csv", query="")
    exports.write_export(export.pk)
    with pytest.raises(NotFound):
        exports.load_finished_export(gate.adam, export.pk)


def test_each_export_is_on_the_record(gate: Gate) -> None:
    written(gate)
    kinds = list(LogRecord.objects.filter(kind__startswith="export.").order_by("pk"))
    assert [one.kind for one in kinds] == ["export.asked", "export.finished"]


@pytest.mark.parametrize("file_format", exports.FORMATS)
def test_a_record_that_cannot_be_read_is_named_and_hides_no_other(
    gate: Gate, file_format: str
) -> None:
    propose(gate.agent)
    bad, *others = LogRecord.objects.order_by("-pk")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE journal_logrecord DISABLE TRIGGER append_only")
        LogRecord.objects.filter(pk=bad.pk).update(leaf=b"\xff not json")
        cursor.execute(
            "ALTER TABLE journal_logrecord ENABLE ALWAYS TRIGGER append_only"
        )
    text = written(gate, file_format)
    assert len(text.splitlines()) - (file_format == "csv") >= len(others) + 1
    said = "This record cannot be read" if file_format == "csv" else '"leaf": null'
    assert [said in line for line in text.splitlines()].count(True) == 1

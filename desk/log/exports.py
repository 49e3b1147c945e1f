"""Exports of the log as files: request, job, list and download.

A person requests an export on a page. A job writes it in parts, so that a crash loses
at most one part; the files are kept for a week. Every cell of a CSV file is inert text.
"""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import parse_qsl

from django.db.models import QuerySet

from journal import clock, log, outbox
from journal.errors import InvalidArgs, NotFound
from journal.models import LogRecord
from journal.operations import operation
from policies.models import Person
from policies.people import build_actor
from reviews import locks, permissions, transitions
from reviews.choices import ExportStatus
from reviews.effects import describe
from reviews.models import Export, ExportPart
from reviews.presenters import inert
from reviews.roles import Permission

from ..components import log_lines
from .filters import LogFilters, select_records

RecordLine = tuple[LogRecord, log_lines.LogLine]
MAX_SHOWN = 20
KEPT_FOR = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class ExportLine:
    """One export as a row of the page, with its filters; `ready`: its file can be
    downloaded."""

    export: Export
    view: list[tuple[str, str]]
    ready: bool

    @property
    def running(self) -> bool:
        return self.export.status == ExportStatus.RUNNING


def list_exports(person: Person, *, now: datetime) -> list[ExportLine]:
    """List a person's newest exports with their progress, in one query."""
    exports = Export.objects.filter(person=person).order_by("-asked_at")[:MAX_SHOWN]
    return [
        ExportLine(
            export=export,
            view=parse_qsl(export.query),
            ready=export.status == ExportStatus.DONE
            and export.asked_at > now - KEPT_FOR,
        )
        for export in exports
    ]


NOT_PERMITTED = "Your permission to export was revoked."
FORMATS = ("csv", "jsonl")
PART_SIZE = 500  # records
MAX_RECORDS = 200_000  # records in one export
BUDGET_S = 8.0  # seconds of one outbox delivery; the rest is enqueued again
# Characters that begin a formula, with their full-width forms.
# By it, a spreadsheet knows that the file is UTF-8.
BYTE_ORDER_MARK = "\ufeff"
_FORMULA_STARTS = "=+-@\uff1d\uff0b\uff0d\uff20"
COLUMNS = (
    "record",
    "seq",
    "at",
    "kind",
    "actor_kind",
    "actor_id",
    "what_happened",
    "effect",
    "tool",
    "risk",
    "agent",
    "thread",
    "proposal",
    "request",
    "policy",
    "flags",
    "took",
    "outcome",
    "ending",
    "ended_at",
    "answer",
    "action_hash",
    "leaf_hash",
)


@operation(writes="Export", logs="export.asked", after="a task that writes the file")
def create_export(*, person: Person, file_format: str, query: str) -> Export:
    """Create an export of the records that fit the filter now; a job writes it. Raises
    NotPermitted, or InvalidArgs for an unknown format or too many records."""
    permissions.check_permission(person, Permission.EXPORT)
    if file_format not in FORMATS:
        raise _build_argument_error(
            "format", "must be csv or jsonl", "Choose CSV or JSONL."
        )
    records = select_records(person, _parse_filters(query))
    newest = records.values_list("pk", flat=True).first() or 0
    count = records[: MAX_RECORDS + 1].count()
    if count > MAX_RECORDS:
        raise _build_argument_error(
            "until",
            f"at most {MAX_RECORDS:,} records in one export; choose a shorter period",
            f"One export has at most {MAX_RECORDS:,} records: choose a shorter period.",
        )
    now = clock.now()
    actor = build_actor(person)
    return transitions.export.create(
        Export(
            person=person,
            format=file_format,
            query=query,
            until_record=newest,
            rows_in_all=count,
            asked_at=now,
        ),
        "ask",
        actor=actor,
        now=now,
        data={"format": file_format, "records": count},
    )


def _build_argument_error(path: str, message: str, repair: str) -> InvalidArgs:
    return InvalidArgs(
        f"Nothing was exported. {repair}",
        errors=[{"path": path, "message": message}],
    )


def _parse_filters(query: str) -> LogFilters:
    return LogFilters.read({**dict(parse_qsl(query)), "before": ""})


def write_export(export_id: str) -> bool:
    """Write parts for a few seconds; returns whether the export is finished."""
    end = time.monotonic() + BUDGET_S
    while _write_part(export_id):
        if time.monotonic() > end:
            return False
    return True


@operation(
    entry="write_export",
    locks="export",
    writes="ExportPart, Export",
    logs="export.finished or export.failed",
)
def _write_part(export_id: str) -> bool:
    """Write the next part or finish the file; returns whether more remains."""
    export = locks.lock_export(export_id)
    if export.status != ExportStatus.RUNNING:
        return False
    if not permissions.has_permission(export.person, Permission.EXPORT):
        _fail_export(export, NOT_PERMITTED)
        return False
    rows = list(_select_remaining(export)[:PART_SIZE])
    if rows or not export.parts.exists():  # an empty result is a file, too
        _store_part(export, rows)
    if not rows:
        _finish_export(export)
    return bool(rows)


def _store_part(export: Export, rows: list[LogRecord]) -> None:
    body = _encode_records(export, rows)
    ExportPart.objects.create(export=export, number=export.parts.count(), body=body)
    export.rows += len(rows)
    export.size += len(body)
    export.at_record = rows[-1].pk if rows else export.at_record
    export.save(update_fields=["rows", "size", "at_record"])


def _select_remaining(export: Export) -> QuerySet[LogRecord]:
    records = select_records(export.person, _parse_filters(export.query))
    return records.filter(
        pk__gt=export.at_record, pk__lte=export.until_record
    ).order_by("pk")


def _encode_records(export: Export, rows: list[LogRecord]) -> bytes:
    events = log_lines.build_log_lines(export.person, rows)
    pairs = list(zip(rows, events, strict=True))
    if export.format == "jsonl":
        return "".join(format_json_lines(pairs)).encode()
    return _format_csv(pairs, heads=not export.rows).encode()


def format_json_lines(pairs: Iterable[RecordLine]) -> Iterator[str]:
    """Format each record as a line: its leaf exactly as stored, its position, and what
    later ended what it says."""
    for row, event in pairs:
        ending = event.ending
        position = getattr(row, "position", None)
        place = {
            "record": row.pk,
            "seq": position.seq if position else None,
            "leaf_hash": bytes(position.leaf_hash).hex() if position else None,
            # Null of a record that cannot be read.
            "leaf": describe.present_or_report(
                row, partial(_decode_leaf, row), lambda: None
            ),
            "ending": ending.word if ending else None,
            "ended_at": ending.at.isoformat() if ending else None,
        }
        yield json.dumps(place, ensure_ascii=True) + "\n"


def _decode_leaf(row: LogRecord) -> str | None:
    return bytes(row.leaf).decode()


def _format_csv(pairs: Iterable[RecordLine], *, heads: bool) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    if heads:
        out.write(BYTE_ORDER_MARK)
        writer.writerow(COLUMNS)
    for row, event in pairs:
        cells = describe.present_or_report(
            row, partial(_list_cells, row, event), partial(_list_unreadable_cells, row)
        )
        writer.writerow([format_cell(cell) for cell in cells])
    return out.getvalue()


def _list_cells(row: LogRecord, event: log_lines.LogLine) -> list[object]:
    leaf = json.loads(bytes(row.leaf))
    position = getattr(row, "position", None)
    return [
        row.pk,
        "" if event.seq is None else event.seq,
        row.at.isoformat(),
        row.kind,
        row.actor_kind,
        row.actor_id,
        "".join(part.text for part in event.wording),
        "".join(part.text for part in event.effect),
        event.tool,
        event.risk,
        row.agent,
        row.thread,
        row.proposal,
        row.request,
        event.policy or "",
        ", ".join(event.flags),
        event.took,
        event.outcome,
        event.ending.word if event.ending else "",
        event.ending.at.isoformat() if event.ending else "",
        event.answer,
        leaf["action_hash"] or "",
        bytes(position.leaf_hash).hex() if position else "",
    ]


def _list_unreadable_cells(row: LogRecord) -> list[object]:
    known = {"record": row.pk, "at": row.at.isoformat(), "kind": row.kind}
    known["what_happened"] = "This record cannot be read"
    return [known.get(name, "") for name in COLUMNS]


def format_cell(cell: object) -> str:
    """Format text so that a spreadsheet shows it and never executes it.

    Hidden characters are named as on a page, and a text that could begin a formula gets
    an apostrophe (OWASP, CSV injection).
    """
    text = inert.format_line(str(cell))
    return (
        f"'{text}"
        if text.lstrip(" ")[:1] in _FORMULA_STARTS and text.strip(" ")
        else text
    )


def _finish_export(export: Export) -> None:
    digest = export.parts.compute_digest()
    now = clock.now()
    transitions.export.apply(
        export,
        "finish",
        actor=build_actor(export.person),
        now=now,
        changes={"finished_at": now},
        data={"records": export.rows, "digest": f"sha256:{digest}"},
    )


def _fail_export(export: Export, problem: str) -> None:
    now = clock.now()
    transitions.export.apply(
        export,
        "fail",
        actor=log.SYSTEM,
        now=now,
        changes={"finished_at": now, "problem": problem},
        data={"problem": problem},
    )


@operation(after="a task that writes the next part")
def enqueue_rest(export_id: str) -> None:
    """Enqueue the rest in the outbox: one delivery never exceeds its time budget."""
    outbox.publish("export.asked", subject=export_id)


def load_finished_export(person: Person, export_id: str) -> Export:
    """Load one of the person's own finished exports. Raises NotFound."""
    own = Export.objects.filter(person=person, status=ExportStatus.DONE)
    export = own.filter(pk=export_id, parts__isnull=False).first()
    if export is None:
        raise NotFound
    return export


def delete_old_files() -> int:
    """Delete the files older than a week. The log keeps the record that they were made.
    Returns the number of deleted parts."""
    old = Export.objects.filter(asked_at__lt=clock.now() - KEPT_FOR)
    count, _ = ExportPart.objects.filter(export__in=old).delete()
    return count

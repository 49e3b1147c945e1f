"""A person's exports of the log, newest first, with how far each has come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import parse_qsl

from django.template.defaultfilters import filesizeformat
from django.urls import reverse

from policies.models import Person
from reviews.choices import ExportStatus
from reviews.models import Export

SHOWN = 20
KEPT = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Line:
    """One export as a row of the page."""

    id: str
    format: str
    view: list[tuple[str, str]]
    view_url: str
    asked_at: datetime
    rows: int
    rows_in_all: int
    state: str
    problem: str
    size: str
    url: str

    @property
    def running(self) -> bool:
        return self.state == ExportStatus.RUNNING


def of(person: Person, *, now: datetime) -> list[Line]:
    """The newest exports in one query."""
    found = Export.objects.filter(person=person).order_by("-asked_at")[:SHOWN]
    return [_line(export, now) for export in found]


def _line(export: Export, now: datetime) -> Line:
    ready = export.status == ExportStatus.DONE and export.asked_at > now - KEPT
    return Line(
        id=export.pk,
        format=export.format.upper(),
        view=parse_qsl(export.query),
        view_url=reverse("reviews:log") + f"?{export.query}",
        asked_at=export.asked_at,
        rows=export.rows,
        rows_in_all=export.rows_in_all,
        state=export.status,
        problem=export.problem,
        size=filesizeformat(export.size),
        url=reverse("reviews:export_file", args=[export.pk]) if ready else "",
    )

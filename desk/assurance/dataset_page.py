"""The page of datasets: what was asked for, what waits for an answer, and the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from django.template.defaultfilters import filesizeformat
from django.urls import reverse

from assurance.datasets import consent
from assurance.datasets.consent import KEPT_FOR
from journal import canonical
from policies.models import Person
from reviews import permissions
from reviews.choices import DatasetStatus
from reviews.models import Dataset
from reviews.permissions import Permission

MOST_SHOWN = 20
STATE_WORDS = {
    DatasetStatus.ASKED: "Awaiting consent",
    DatasetStatus.RUNNING: "Being written",
    DatasetStatus.DONE: "Finished",
    DatasetStatus.FAILED: "Failed",
    DatasetStatus.REFUSED: "Refused",
    DatasetStatus.WITHDRAWN: "Withdrawn",
    DatasetStatus.LAPSED: "Expired: nobody answered within seven days",
}


@dataclass(frozen=True, slots=True)
class DatasetLine:
    """One dataset. `why_not` says why this reader may not answer it; `error` and
    `typed` are of an answer that was refused."""

    id: str
    state: str
    purpose: str
    asked_by: str
    asked_at: datetime
    owner: str
    tools: Sequence[str]
    since: date
    until: date
    shares: str
    canaries: bool
    settled_by: str
    settled_at: datetime | None
    refusal: str
    problem: str
    progress: str
    labels: Sequence[tuple[str, int]]
    url: str
    expires_at: datetime | None
    waits: bool
    shown: str  # what the form sends back
    why_not: str
    may_withdraw: bool
    error: str = ""
    typed: str = ""


@dataclass(frozen=True, slots=True)
class DatasetsPage:
    """The whole page. Only administrators may ask."""

    may_ask: bool
    lines: Sequence[DatasetLine] = field(default_factory=list)

    def with_error(self, pk: str, error: str, typed: str) -> DatasetsPage:
        """The same page with what was wrong in the answer to one dataset."""
        lines = [
            replace(line, error=error, typed=typed) if line.id == pk else line
            for line in self.lines
        ]
        return replace(self, lines=lines)


def build_datasets_page(person: Person, now: datetime) -> DatasetsPage:
    """Build the page, in a fixed number of queries."""
    manages = permissions.has_permission(person, Permission.MANAGE_DATASETS)
    datasets = consent.select_visible_datasets(person).order_by("-asked_at")
    return DatasetsPage(
        may_ask=manages,
        lines=[
            _build_line(person, dataset, manages, now)
            for dataset in datasets[:MOST_SHOWN]
        ],
    )


def _build_line(
    person: Person, dataset: Dataset, manages: bool, now: datetime
) -> DatasetLine:
    status = DatasetStatus(dataset.status)
    ends = dataset.finished_at + KEPT_FOR if dataset.finished_at else None
    ready = status is DatasetStatus.DONE and ends is not None and ends > now
    parties = {dataset.asked_by_id, dataset.owner_id, dataset.settled_by_id}
    may_download = ready and person.pk in parties
    return DatasetLine(
        id=dataset.pk,
        state=STATE_WORDS[status],
        purpose=dataset.purpose,
        asked_by=str(dataset.asked_by),
        asked_at=dataset.asked_at,
        owner=str(dataset.owner),
        tools=dataset.tools,
        since=dataset.since.date(),
        until=(dataset.until - timedelta(days=1)).date(),
        shares=f"{dataset.train} % train, {dataset.validation} % validation, "
        f"{dataset.test} % test",
        canaries=dataset.with_canaries,
        settled_by=str(dataset.settled_by or ""),
        settled_at=dataset.settled_at,
        refusal=dataset.refusal,
        problem=dataset.problem,
        progress=_describe_progress(dataset),
        labels=list(dataset.counts.get("label", {}).items()),
        url=reverse("reviews:dataset_file", args=[dataset.pk]) if may_download else "",
        expires_at=ends if ready else None,
        waits=manages and status is DatasetStatus.ASKED,
        shown=canonical.format_shown(consent.build_shown_terms(dataset)),
        why_not=consent.describe_why_no_answer(dataset, person),
        may_withdraw=person.pk == dataset.asked_by_id,
    )


def _describe_progress(dataset: Dataset) -> str:
    """How far the file is; empty before the job has begun."""
    if dataset.status == DatasetStatus.RUNNING:
        return f"{dataset.rows} of {dataset.rows_in_all} lines" if dataset.rows else ""
    if dataset.status == DatasetStatus.DONE:
        lines = "line" if dataset.rows == 1 else "lines"
        return f"{dataset.rows} {lines}, {filesizeformat(dataset.size)}"
    return ""

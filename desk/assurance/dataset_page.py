"""The page of datasets: what was asked for, what waits for an answer, and the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from django.template.defaultfilters import filesizeformat

from assurance.datasets import consent
from assurance.datasets.consent import KEPT_FOR
from journal import canonical
from policies.models import Person
from reviews import permissions
from reviews.choices import DatasetStatus
from reviews.models import Dataset
from reviews.roles import Permission

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

    dataset: Dataset
    state: str
    since: date
    until: date
    progress: str
    may_download: bool
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
            replace(line, error=error, typed=typed) if line.dataset.pk == pk else line
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
    return DatasetLine(
        dataset=dataset,
        state=STATE_WORDS[status],
        since=dataset.since.date(),
        until=(dataset.until - timedelta(days=1)).date(),
        progress=_describe_progress(dataset),
        may_download=ready and person.pk in parties,
        expires_at=ends if ready else None,
        waits=manages and status is DatasetStatus.ASKED,
        shown=canonical.format_shown(consent.build_shown_terms(dataset)),
        why_not=consent.describe_why_no_answer(dataset, person),
        may_withdraw=person.pk == dataset.asked_by_id,
    )


def _describe_progress(dataset: Dataset) -> str:
    if dataset.status == DatasetStatus.RUNNING:
        return f"{dataset.rows} of {dataset.rows_in_all} lines" if dataset.rows else ""
    if dataset.status == DatasetStatus.DONE:
        lines = "line" if dataset.rows == 1 else "lines"
        return f"{dataset.rows} {lines}, {filesizeformat(dataset.size)}"
    return ""

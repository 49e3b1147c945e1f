"""Page evidence of a decision on a batch.

The page is rendered from inputs that the browser sent back and is rendered again from
the same inputs whenever somebody opens it. Versions and readings never change, so
members are rebuilt as a page showed them, whatever became of them since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q
from django.template.loader import render_to_string
from django.utils import timezone

from policies.models import Person
from reviews.batches import membership
from reviews.batches.membership import BatchMember
from reviews.decisions.submission import RenderedPage
from reviews.models import Batch, RequestVersion, StateReading

from ..components import page_evidence
from .forms import ShownBatchRow
from .load import LoadedBatch
from .page import BatchPage, build_page
from .rows import BatchSamples, read_opened_tokens
from .selection import BatchSelection


def load_members_as_shown(
    batch: Batch, rows: Sequence[ShownBatchRow]
) -> list[BatchMember]:
    """Load these rows as members, in the order of the batch, in three queries. A row
    that never existed in this form is left out."""
    wanted = {row.request: row for row in rows}
    items = batch.items.filter(request__in=wanted).order_by("position")
    versions = _load_versions(rows)
    asked = [row.reading for row in rows if row.reading]
    readings = StateReading.objects.in_bulk(asked)
    members = []
    for item in {item.request_id: item for item in items}.values():
        version, row = versions.get(item.request_id), wanted[item.request_id]
        reading = readings.get(row.reading) if row.reading else None
        if version is not None and _is_reading_of(reading, version, row):
            item.request = version.request
            members.append(BatchMember(item, version.request, version, reading))
    return members


def _load_versions(rows: Sequence[ShownBatchRow]) -> dict[str, RequestVersion]:
    these = Q(pk__in=[])
    for row in rows:
        these |= Q(request=row.request, number=row.version)
    asked = RequestVersion.objects.filter(these)
    versions = asked.select_related("request__proposal", "revision__tool", "policy")
    versions = versions.defer(*membership.SHARED_DOCUMENTS)
    for version in versions:
        version.revision.proposal = version.request.proposal
    return {version.request_id: version for version in versions}


def _is_reading_of(
    reading: StateReading | None, version: RequestVersion, row: ShownBatchRow
) -> bool:
    if reading is None:
        return row.reading is None
    return reading.revision_id == version.revision_id


PARTS = ("desk/batches/_evidence.html",)
# The code that computes, escapes and formats the values on the page.
SOURCES = (*page_evidence.RENDERING_SOURCES, "desk.batches")


def _rebuild_page(
    person: Person, batch: Batch, inputs: Mapping[str, Any]
) -> BatchPage | None:
    """The page of a batch that one person saw; None when one of its rows no longer
    exists. The tokens of opened rows were verified when the evidence was built."""
    loaded = LoadedBatch(
        person=person,
        batch=batch,
        members=load_members_as_shown(
            batch, [ShownBatchRow(*row) for row in inputs["rows"]]
        ),
        now=datetime.fromisoformat(inputs["at"]),
        shut_reasons=inputs["shut"],
    )
    if len(loaded.members) != len(inputs["rows"]):
        return None
    opened = {pk: datetime.fromisoformat(at) for pk, at in inputs["opened"].items()}
    chosen = frozenset(inputs["chosen"])
    selection = BatchSelection(items=chosen, made=True, changed=inputs["changed"])
    samples = BatchSamples(inputs["samples"], opened)
    return build_page(loaded, selection, kept_samples=samples)


def build_page_evidence(
    page: BatchPage, shown: Sequence[ShownBatchRow]
) -> RenderedPage | None:
    """Build the evidence of what this person has on the screen, by the rows that it
    sent. None if their marks do not match, or if a ticked row was not on the page."""
    batch = page.loaded.batch
    rows = {row.request: row for row in shown}
    members = load_members_as_shown(batch, list(rows.values()))
    marks = {member.id: member.mark for member in members}
    if marks != {pk: row.mark for pk, row in rows.items()}:
        return None
    if not marks or not set(page.ticked.ids) <= marks.keys():
        return None
    inputs = _build_inputs(page, members, list(rows.values()), marks)
    rebuilt = _rebuild_page(page.loaded.person, batch, inputs)
    return _render_evidence(rebuilt, inputs) if rebuilt else None


def _build_inputs(
    page: BatchPage,
    members: Sequence[BatchMember],
    rows: Sequence[ShownBatchRow],
    marks: Mapping[str, str],
) -> dict[str, Any]:
    """The inputs of the page: ids, digests and our own sentences, nothing else."""
    loaded = page.loaded
    person, tool = loaded.person.public_id, loaded.batch.tool
    tokens = page.selection.opened
    opened = read_opened_tokens(tokens, batch=page.id, person=person, marks=marks)
    return {
        "batch": page.id,
        "person": person,
        "at": loaded.now.isoformat(),
        "tool": {"name": tool.name, "version": tool.version, "digest": tool.digest},
        "policy": page.facts.version.policy.number,
        "rows": [[row.request, row.version, row.reading] for row in rows],
        "chosen": page.ticked.ids,
        "digest": page.ticked.digest,
        "samples": [pk for pk in page.samples.ids if pk in marks],
        "opened": {pk: at.isoformat() for pk, at in opened.items()},
        "changed": {
            pk: sentence
            for pk, sentence in page.selection.changed.items()
            if pk in marks
        },
        "shut": {member.id: why for member in members if (why := loaded.shut(member))},
    }


def rebuild_page_evidence(
    person: Person, stored: Mapping[str, Any]
) -> RenderedPage | None:
    """Rebuild the page that this person saw; None when one of its rows is gone."""
    batch = Batch.objects.select_related("tool").filter(pk=stored["batch"]).first()
    page = _rebuild_page(person, batch, stored) if batch else None
    return _render_evidence(page, stored) if page else None


def _render_evidence(page: BatchPage, inputs: Mapping[str, Any]) -> RenderedPage:
    with timezone.override(UTC):  # the same bytes for every reader, at any time
        parts = tuple(str(render_to_string(name, {"page": page})) for name in PARTS)
    version = page_evidence.compute_template_digest(PARTS, SOURCES)
    return RenderedPage(parts, dict(inputs), version)

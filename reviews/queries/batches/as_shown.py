"""Members of a batch as they were on a page, whatever became of them since: versions
and readings never change, so any page can be made anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from reviews.batches import membership
from reviews.batches.membership import Member
from reviews.models import Batch, RequestVersion, StateReading


@dataclass(frozen=True, slots=True)
class Shown:
    """One row: the version that was asked then, and which reading of the state; None
    for the revision's own."""

    request: str
    version: int
    reading: int | None


def members(batch: Batch, rows: Sequence[Shown]) -> list[Member]:
    """These rows, in the order of the batch, in three queries. What never was so is
    left out."""
    wanted = {row.request: row for row in rows}
    items = batch.items.filter(request__in=wanted).order_by("position")
    versions = _versions(rows)
    asked = [row.reading for row in rows if row.reading]
    readings = StateReading.objects.in_bulk(asked)
    found = []
    for item in {item.request_id: item for item in items}.values():
        version, row = versions.get(item.request_id), wanted[item.request_id]
        reading = readings.get(row.reading) if row.reading else None
        if version is not None and _is_of(reading, version, row):
            item.request = version.request
            found.append(Member(item, version.request, version, reading))
    return found


def _versions(rows: Sequence[Shown]) -> dict[str, RequestVersion]:
    these = Q(pk__in=[])
    for row in rows:
        these |= Q(request=row.request, number=row.version)
    asked = RequestVersion.objects.filter(these)
    found = asked.select_related("request__proposal", "revision__tool", "policy")
    found = found.defer(*membership.LARGE)
    for version in found:
        version.revision.proposal = version.request.proposal
    return {version.request_id: version for version in found}


def _is_of(reading: StateReading | None, version: RequestVersion, row: Shown) -> bool:
    if reading is None:
        return row.reading is None
    return reading.revision_id == version.revision_id

"""The page of a batch as it is kept with the decision on it: made from what the page
said it showed, and made anew from the same whenever it is opened (gate.md 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from django.template.loader import render_to_string
from django.utils import timezone

from policies.models import Person
from reviews.batches.membership import Member
from reviews.decisions.submission import Sight
from reviews.desk.components import page_evidence
from reviews.models import Batch
from reviews.queries.batches import as_shown
from reviews.queries.batches import samples as batches_samples
from reviews.queries.batches.as_shown import Shown
from reviews.queries.batches.choice import Selection
from reviews.queries.batches.samples import Opened

from .load import Loaded
from .page import BatchPage

PARTS = ("reviews/_batch_seen.html",)
# What else makes the bytes: how values are worked out, escaped and drawn.
SOURCES = (*page_evidence.SOURCES, "reviews.queries.batches")


class KeptPage(BatchPage):
    """What one person saw of a batch, from the inputs that are stored with it."""

    kept = True

    def __init__(self, person: Person, batch: Batch, inputs: Mapping[str, Any]) -> None:
        self.inputs = inputs
        loaded = Loaded(
            person=person,
            batch=batch,
            members=as_shown.members(batch, _rows(inputs)),
            now=_moment(inputs["at"]),
            told=inputs["shut"],
        )
        chosen = frozenset(inputs["chosen"])
        selection = Selection(items=chosen, made=True, changed=inputs["changed"])
        super().__init__(loaded, selection)

    @cached_property
    def samples(self) -> list[str]:
        return list(self.inputs["samples"])

    @cached_property
    def opened(self) -> dict[str, Opened]:
        """As the page said it: those tokens were ours."""
        marks = self.loaded.marks
        found = self.inputs["opened"].items()
        return {pk: Opened(pk, marks[pk], _moment(at)) for pk, at in found}


def _moment(stored: str) -> datetime:
    return datetime.fromisoformat(stored)


def _rows(inputs: Mapping[str, Any]) -> list[Shown]:
    return [Shown(*row) for row in inputs["rows"]]


def sight(page: BatchPage, shown: Mapping[str, tuple[str, Shown]]) -> Sight | None:
    """What this person has on the screen. `shown` says of each row its mark and what
    it was made from; None where that cannot be so, or is not all of what is chosen."""
    batch = page.loaded.batch
    members = as_shown.members(batch, [row for _, row in shown.values()])
    marks = {member.id: member.mark for member in members}
    if marks != {pk: mark for pk, (mark, _) in shown.items()}:
        return None
    if not marks or not set(page.choice.ids) <= marks.keys():
        return None
    inputs = _inputs(page, members, [row for _, row in shown.values()], marks)
    return _made(KeptPage(page.loaded.person, batch, inputs))


def _inputs(
    page: BatchPage,
    members: Sequence[Member],
    rows: Sequence[Shown],
    marks: Mapping[str, str],
) -> dict[str, Any]:
    """Ids, digests and sentences of ours: no text of anybody's."""
    loaded = page.loaded
    person, tool = loaded.person.public_id, loaded.batch.tool
    sent = page.selection.opened
    opened = batches_samples.read(sent, batch=page.id, person=person, marks=marks)
    return {
        "batch": page.id,
        "person": person,
        "at": loaded.now.isoformat(),
        "tool": {"name": tool.name, "version": tool.version, "digest": tool.digest},
        "policy": page.facts.policy,
        "rows": [[row.request, row.version, row.reading] for row in rows],
        "chosen": page.choice.ids,
        "digest": page.choice.digest,
        "samples": [pk for pk in page.samples if pk in marks],
        "opened": {pk: one.at.isoformat() for pk, one in opened.items()},
        "changed": {
            pk: said for pk, said in page.selection.changed.items() if pk in marks
        },
        "shut": {one.id: why for one in members if (why := loaded.shut(one))},
    }


def again(person: Person, stored: Mapping[str, Any]) -> Sight | None:
    """The page that this person saw, made anew; None when a row of it is not there
    any more."""
    batch = Batch.objects.select_related("tool").filter(pk=stored["batch"]).first()
    if batch is None:
        return None
    page = KeptPage(person, batch, stored)
    return _made(page) if len(page.loaded.members) == len(stored["rows"]) else None


def _made(page: KeptPage) -> Sight:
    with timezone.override(UTC):  # the same bytes for whoever reads them, and later
        parts = tuple(str(render_to_string(name, {"page": page})) for name in PARTS)
    version = page_evidence.template_version(PARTS, SOURCES)
    return Sight(parts, dict(page.inputs), version)

"""One member of a batch: as a line of the table, and opened in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse

from journal.errors import NotFound
from policies.documents import ToolDefinition
from policies.money import Money
from reviews.batches.membership import Member
from reviews.desk.components.undo import Reverses
from reviews.effects import describe
from reviews.models import Revision
from reviews.presenters import Presentation
from reviews.presenters.arguments import in_order
from reviews.presenters.common import Subject
from reviews.presenters.shapes import Cell
from reviews.presenters.shapes import Row as Fact
from reviews.queries.batches import samples

from .columns import Column, Constant, Line
from .load import Loaded


@dataclass(frozen=True, slots=True)
class Row:
    """One member as a line of the table."""

    id: str
    url: str
    sent: str  # what a press says of it: as it was on the page
    noted: str  # and that it was said to have changed
    first: Cell | None  # what tells it from the others
    reverses: Reverses | None  # what it undoes
    others: Sequence[tuple[Column, Cell]]
    reasons: Sequence[str]
    changed: str
    blocked: str
    checked: bool
    sample: bool
    peek: Peek | None  # once it was opened


@dataclass(frozen=True, slots=True)
class Peek:
    """R1 to R3 of one member, in the table."""

    id: str
    url: str
    shown: Presentation | None
    rest: Sequence[tuple[str, Cell]]  # every argument that is in no change
    at: datetime
    token: str

    @property
    def current(self) -> tuple[Fact, ...]:
        """The state as it was read, of which no argument speaks."""
        return (*self.shown.top, *self.shown.now) if self.shown else ()


def line_of(member: Member) -> Line:
    """A member with its own view's values and tags."""
    revision = member.version.revision
    shown = describe.presentation(revision, reading_of(member))
    return Line(
        id=member.id,
        subject=subject_of(revision, member.definition, reading_of(member)),
        amount=amount_of(member),
        tags=shown.tags if shown else (),
        counts=_counts(member.definition, shown),
    )


def _counts(
    definition: ToolDefinition, shown: Presentation | None
) -> tuple[Constant, ...]:
    """What the tool declares that each call moves by a number: `0 → 1`."""
    facts = {one.fact for one in definition.counts}
    return tuple(
        Constant(change.label, Cell(f"{change.before.text} → {change.after.text}"))
        for change in (shown.changes if shown else ())
        if change.path in facts and change.before and change.after
    )


def subject_of(
    revision: Revision,
    definition: ToolDefinition,
    reading: Mapping[str, Any] | None = None,
) -> Subject:
    """The arguments as their presenter reads them: labels, types, what is hidden; and
    the record and facts of a reading, by default the revision's own."""
    known = reading or revision.reading
    return Subject(
        definition,
        in_order(revision.args, definition.arguments),
        before=known.get("before"),
        labels=known.get("labels", {}),
        facts=describe.facts_of(revision, reading),
        conceal=describe.concealer(revision),
    )


def sent_of(member: Member) -> str:
    """Its mark, and from what the row was made."""
    reading = member.reading.pk if member.reading else ""
    return f"{member.id}~{member.mark}~{member.version.number}~{reading}"


def reading_of(member: Member) -> Mapping[str, Any] | None:
    return member.reading.reading if member.reading else None


def peek_of(loaded: Loaded, member: Member, at: datetime | None = None) -> Peek:
    """R1 to R3 of one member, and the mark that it was opened, by default just now."""
    revision = member.version.revision
    shown = describe.presentation(revision, reading_of(member))
    subject = subject_of(revision, member.definition)
    told = {change.path for change in shown.changes} if shown else set()
    return Peek(
        id=member.id,
        url=reverse("reviews:request_detail", args=[member.id]),
        shown=shown,
        rest=[
            (subject.label(leaf.path), subject.cell(leaf))
            for leaf in subject.leaves
            if leaf.path not in told
        ],
        at=at or loaded.now,
        token=_token(loaded, member, at or loaded.now),
    )


def _token(loaded: Loaded, member: Member, at: datetime) -> str:
    return samples.token(
        batch=loaded.batch.pk,
        person=loaded.person.public_id,
        request=member.id,
        mark=loaded.marks[member.id],
        at=at,
    )


def peek(loaded: Loaded, request_id: str) -> Peek:
    """Raises NotFound when it is no member."""
    for member in loaded.members:
        if member.id == request_id:
            return peek_of(loaded, member)
    raise NotFound


def amount_of(member: Member) -> Money | None:
    """What it moves; None where there is no money."""
    revision = member.version.revision
    minor = revision.amount_minor
    return None if minor is None else Money(minor, revision.currency)

"""A record that changes, or goes: fields before and after. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from .common import Subject, present, tags
from .compare import Comparison
from .shapes import Presentation, Tag


def show(subject: Subject) -> Presentation:
    """Field by field; what is emptied is called out."""
    return present(subject, tags=tags(subject, *_emptied(subject)))


def show_deletion(subject: Subject) -> Presentation:
    """What the arguments name is gone afterwards, so each is a removed row."""
    comparison = Comparison(subject.cell, subject.label)
    return present(
        subject,
        tags=tags(subject, Tag("Deletes", loud=True)),
        changes=tuple(comparison.change(leaf, None) for leaf in subject.leaves),
        other=(),
        unchanged=(),
    )


def _emptied(subject: Subject) -> Iterator[Tag]:
    removed = [c.label for c in subject.rows.changes if c.kind == "removed"]
    if len(removed) == 1:
        yield Tag(f"Empties: {removed[0]}"[:60], loud=True)
    elif removed:
        yield Tag(f"Empties {len(removed)} fields", loud=True)

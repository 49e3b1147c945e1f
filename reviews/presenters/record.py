"""A record that changes, or goes: fields before and after. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from .common import Subject, present
from .compare import Comparison
from .shapes import Presentation, Tag


def show(subject: Subject) -> Presentation:
    """Field by field; what is emptied is called out."""
    return present(subject, *_emptied(subject))


def show_deletion(subject: Subject) -> Presentation:
    """What the arguments name is gone afterwards, so each is a removed row."""
    comparison = Comparison(subject.cell, subject.label)
    return present(
        subject,
        Tag("Deletes", loud=True),
        changes=tuple(comparison.change(leaf, None) for leaf in subject.leaves),
        other=(),
        unchanged=(),
    )


def _emptied(subject: Subject) -> Iterator[Tag]:
    # Counted, not named: a tag is ours, and a label may be the agent's.
    count = sum(change.kind == "removed" for change in subject.rows.changes)
    if count:
        yield Tag(f"Empties {count} field{'' if count == 1 else 's'}", loud=True)

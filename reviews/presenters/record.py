"""A record that changes, or goes: fields before and after. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from . import moments
from .arguments import is_personal, leaves
from .common import Subject, count, is_in, present
from .shapes import Presentation, Row, Tag

MANY_ROWS = 100
COUNT = "rows"  # of the reading: how many records, and no field of one


def show(subject: Subject) -> Presentation:
    """Field by field; what is emptied and whom it is about is called out."""
    other = tuple(_dated(row) for row in subject.rows.other)
    return present(
        subject,
        *_emptied(subject),
        *affected(subject),
        *personal(subject),
        other=other,
    )


def show_deletion(subject: Subject) -> Presentation:
    """Every field of the record as it was read is a removed row: nothing of it may be
    taken to stay because no argument names it.

    Without a record, what the arguments name is what is removed.
    """
    record = {n: value for n, value in (subject.before or {}).items() if n != COUNT}
    write = subject.as_read if record else subject.told
    change = replace(subject.comparison, cell=write).change
    named = [
        Row(subject.label(leaf.path), leaf.path, subject.cell(leaf))
        for leaf in subject.leaves
    ]
    return present(
        subject,
        Tag("Deletes", loud=True),
        *affected(subject),
        changes=tuple(change(one, None) for one in leaves(record) or subject.leaves),
        other=tuple(named) if record else (),
        unchanged=(),
        now=(),
        gone="erased",
    )


def affected(subject: Subject) -> Iterator[Tag]:
    """How many rows, only as the tool declared it."""
    rows = subject.read(COUNT)
    if isinstance(rows, int) and not isinstance(rows, bool) and rows > MANY_ROWS:
        yield Tag(f"{rows:,} rows, as the tool declared", loud=True)


def personal(subject: Subject) -> Iterator[Tag]:
    """How many of the fields that change are about a person; by name, so a hint."""
    changed = [change.path for change in subject.rows.changes]
    found = {path for path in changed if is_personal(path)}
    if found:
        yield Tag(f"Personal data: {count(len(found), 'field')}")


def _dated(row: Row) -> Row:
    """A moment with an offset is said in UTC as well."""
    said = moments.in_utc(row.cell.text) if row.cell.kind == "text" else ""
    return replace(row, note=said) if said else row


def _emptied(subject: Subject) -> Iterator[Tag]:
    # Counted, not named: a tag is ours, and a label may be the agent's.
    # A text in the place of a list, or the other way round, empties nothing.
    changes = subject.rows.changes
    stays = [change.path for change in changes if change.kind != "removed"]
    emptied = sum(
        not any(is_in(change.path, one) or is_in(one, change.path) for one in stays)
        for change in changes
        if change.kind == "removed"
    )
    if emptied:
        yield Tag(f"Empties {count(emptied, 'field')}", loud=True)

"""A record that is changed or deleted: its fields before and after. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .arguments import collect_leaves, format_count, is_path_within, is_personal_name
from .common import Subject, add_utc_note, build_presentation
from .shapes import Presentation, Tag

MANY_ROWS = 100
COUNT_FIELD = "rows"  # in the reading: the number of records, not a field


def show(subject: Subject) -> Presentation:
    """Present field by field; tags name emptied fields and personal data."""
    return build_presentation(
        subject,
        *_build_emptied_tags(subject),
        *build_affected_tags(subject),
        *build_personal_tags(subject),
        other=tuple(map(add_utc_note, subject.rows.other)),
    )


def show_deletion(subject: Subject) -> Presentation:
    """Present every field of the record, as read, as a removed row. Otherwise a
    reviewer could believe that a field stays because no argument names it. Without a
    record, the arguments themselves are the removed rows."""
    record = {
        n: value for n, value in (subject.before or {}).items() if n != COUNT_FIELD
    }
    write = subject.as_read if record else subject.cell_in_words
    change = replace(subject.comparison, cell=write).change
    return build_presentation(
        subject,
        Tag("Deletes", loud=True),
        *build_affected_tags(subject),
        changes=tuple(
            change(leaf, None) for leaf in collect_leaves(record) or subject.leaves
        ),
        other=tuple(map(subject.row, subject.leaves)) if record else (),
        unchanged=(),
        now=(),
        gone="erased",
    )


def build_affected_tags(subject: Subject) -> Iterator[Tag]:
    """Yield a tag for many rows, only as the tool's reader declared their number."""
    rows = subject.read(COUNT_FIELD)
    if isinstance(rows, int) and not isinstance(rows, bool) and rows > MANY_ROWS:
        yield Tag(f"{rows:,} rows, as declared by the tool", loud=True)


def build_personal_tags(subject: Subject) -> Iterator[Tag]:
    """Yield a tag for changed fields about a person, a hint that goes by field
    names."""
    changed = [change.path for change in subject.rows.changes]
    personal = {path for path in changed if is_personal_name(path)}
    if personal:
        yield Tag(f"Personal data: {format_count(len(personal), 'field')}")


def _build_emptied_tags(subject: Subject) -> Iterator[Tag]:
    # The tag counts labels and does not quote them: a tag is Counterseal's, and a label
    # may be the agent's. A text that replaces a list, or the reverse, empties nothing.
    changes = subject.rows.changes
    stays = [change.path for change in changes if change.kind != "removed"]
    emptied = sum(
        not any(
            is_path_within(change.path, path) or is_path_within(path, change.path)
            for path in stays
        )
        for change in changes
        if change.kind == "removed"
    )
    if emptied:
        yield Tag(f"Empties {format_count(emptied, 'field')}", loud=True)

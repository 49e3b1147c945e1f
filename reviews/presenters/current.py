"""The state as the tool's reader found it, and the facts shown on top of a page.
Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from policies.money import Money, format_money

from . import moments
from .arguments import build_cell, collect_leaves
from .shapes import Cell, RiskIndicator, Tag, ValueRow

if TYPE_CHECKING:
    from .common import Subject

NOT_KNOWN = Cell("not known", "nothing", sure=True)


def split_current_rows(
    subject: Subject, now: Iterable[ValueRow]
) -> tuple[tuple[ValueRow, ...], tuple[ValueRow, ...]]:
    """Split the current record into the rows on top of the page, which are the facts
    that the policy names, and the rest."""
    names = subject.definition.review.facts
    top = [row for name in names for row in build_fact_rows(subject, name)]
    shown = {row.path for row in top}
    below = (row for row in now if row.path not in shown)
    return _add_moment_notes(subject, top), _add_moment_notes(subject, below)


def to_moment_cell(made: Cell) -> Cell:
    """The cell in words, if its text is exactly a moment or a day."""
    plain = made.kind == "text" and not made.raw
    at = moments.parse_exact_moment(made.text) if plain else None
    if at is None:
        return made
    return replace(made, text=moments.format_moment(at), raw=made.text, at=at)


def _add_moment_notes(
    subject: Subject, rows: Iterable[ValueRow]
) -> tuple[ValueRow, ...]:
    return tuple(_add_moment_note(row, subject.at) for row in rows)


def _add_moment_note(row: ValueRow, read: datetime | None) -> ValueRow:
    """Note on a moment how long before or after the reading it lies."""
    if not (row.cell.at and read):
        return row
    is_end = row.path.endswith("until") or row.label.endswith(" until")
    return replace(
        row, note=moments.describe_distance(row.cell.at, read, is_end=is_end)
    )


def build_fact_rows(subject: Subject, name: str) -> list[ValueRow]:
    """The rows of one reader's fact, one per leaf: from the record, else as the rules
    read it, else as not known."""
    record = subject.before or {}
    if name in record:
        return [
            ValueRow(subject.label(leaf.path), leaf.path, subject.as_read(leaf))
            for leaf in collect_leaves({name: record[name]})
        ]
    if not record and not subject.reader_facts:
        return []  # without a reading, the page says so once
    return [ValueRow(subject.label(name), name, _build_fact_cell(subject, name))]


def format_fact(subject: Subject, name: str) -> str:
    """A fact on one line, for a sentence or a cell; empty if it is not known."""
    cells = [row.cell for row in build_fact_rows(subject, name)]
    known = (cell for cell in cells if cell is not NOT_KNOWN)
    return ", ".join(cell.text for cell in known if cell.kind != "empty text")


def build_conflict_tags(subject: Subject) -> Iterator[Tag]:
    """Yield a tag for each contradiction of an agent's claim, as the gate stored it."""
    for conflict in subject.facts.get("conflicts") or ():
        if conflict["checked"]:
            yield Tag(conflict["text"], True, RiskIndicator.CONTRADICTION)
        else:
            yield Tag(f"Not checked: {conflict['text']}", loud=True)


def _build_fact_cell(subject: Subject, name: str) -> Cell:
    """The fact as the rules read it, money with its currency."""
    value, currency = subject.fact(name), subject.fact(f"{name}_currency")
    if value is None:
        return NOT_KNOWN
    if currency and isinstance(value, int):
        return Cell(format_money(Money(value, str(currency))))
    return to_moment_cell(build_cell(value).settled)

"""The state as the tool's reader found it, and the facts shown on top of a page.
Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from policies.money import Money, format_amount

from . import moments
from .arguments import cell, leaves
from .shapes import Cell, Row, Tag

if TYPE_CHECKING:
    from .common import Subject

NOT_KNOWN = Cell("not known", "nothing", sure=True)


def figure(amount: Money) -> str:
    """Format an amount: `12,500.00 USD`, with thousands grouped and a decimal point."""
    whole, point, decimals = format_amount(amount).partition(".")
    return f"{int(whole):,}{point}{decimals} {amount.currency}"


def split(
    subject: Subject, now: Iterable[Row]
) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Split the current record into the rows on top of the page and the rest.

    The facts that the policy names are on top.
    """
    rest = tuple(now)
    names = subject.definition.review.facts
    top = tuple(row for name in names for row in rows(subject, name))
    shown = {row.path for row in top}
    below = (row for row in rest if row.path not in shown)
    return _noted(subject, top), _noted(subject, below)


def dated(made: Cell) -> Cell:
    """The cell in words, if its text is exactly a moment or a day."""
    at = moments.known(made.text) if made.kind == "text" and not made.raw else None
    if at is None:
        return made
    return replace(made, text=moments.in_words(at), raw=made.text, at=at)


def _noted(subject: Subject, found: Iterable[Row]) -> tuple[Row, ...]:
    """Note on each moment how long before or after the reading it lies."""
    return tuple(
        replace(row, note=moments.against(row.cell.at, subject.at, is_end=_is_end(row)))
        if row.cell.at and subject.at
        else row
        for row in found
    )


def _is_end(row: Row) -> bool:
    return row.path.endswith("until") or row.label.endswith(" until")


def rows(subject: Subject, name: str) -> list[Row]:
    """The rows of one reader's fact, one per leaf: from the record, else as the rules
    read it.

    A fact that the reader did not give is shown as not known.
    """
    record = subject.before or {}
    if name in record:
        found = leaves({name: record[name]})
        return [
            Row(subject.label(leaf.path), leaf.path, subject.as_read(leaf))
            for leaf in found
        ]
    if not record and not _facts(subject):
        return []  # without a reading, the page says so once
    return [Row(subject.label(name), name, _as_read(subject, name) or NOT_KNOWN)]


def text(subject: Subject, name: str) -> str:
    """A fact on one line, for a sentence or a cell; empty if it is not known."""
    found = [row.cell for row in rows(subject, name)]
    known = (one for one in found if one is not NOT_KNOWN and one.kind != "empty text")
    return ", ".join(one.text for one in known)


def conflicts(subject: Subject) -> Iterator[Tag]:
    """Yield a tag for each contradiction of an agent's claim, as the gate stored it."""
    for found in subject.facts.get("conflicts") or ():
        said = found["text"] if found["checked"] else f"Not checked: {found['text']}"
        yield Tag(said, loud=True)


def _as_read(subject: Subject, name: str) -> Cell | None:
    """The fact as the rules read it, money with its currency; None if it is absent."""
    facts = _facts(subject)
    if facts.get(name) is None:
        return None
    value, currency = facts[name], facts.get(f"{name}_currency")
    if currency and isinstance(value, int):
        return Cell(figure(Money(value, str(currency))))
    return dated(cell(value).settled)


def _facts(subject: Subject) -> Mapping[str, Any]:
    found = subject.facts.get("before")
    return found if isinstance(found, Mapping) else {}

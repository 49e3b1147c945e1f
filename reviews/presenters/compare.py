"""Before and after, field by field, destructive rows first. Pure.

A field of the before-state that the arguments name is changed, added, removed or
unchanged. Arguments it does not know are `other` rows; fields no argument speaks of are
the state as it is `now`. Lists of plain values are compared as collections.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .arguments import Leaf, is_nothing, leaves
from .shapes import Cell, Change, ChangeKind, Row

_ORDER: dict[ChangeKind, int] = {"removed": 0, "changed": 1, "added": 2}
MakeCell = Callable[[Leaf], Cell]
MakeLabel = Callable[[str], str]


@dataclass(slots=True)
class Rows:
    """What the comparison found; every leaf of the arguments is in one of the lists
    but `now`."""

    changes: list[Change] = field(default_factory=list)
    unchanged: list[Row] = field(default_factory=list)
    other: list[Row] = field(default_factory=list)
    now: list[Row] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How leaves are written down, and where they go."""

    cell: MakeCell
    label: MakeLabel
    read: MakeCell  # a leaf of the state alone

    def rows(self, args: Mapping[str, Any], before: Mapping[str, Any] | None) -> Rows:
        """Compare the arguments with the state that was read, if any."""
        rows, known = Rows(), before or {}
        for name, value in args.items():
            if name not in known:
                rows.other += map(self._row, leaves({name: value}))
            elif _is_collection(value) and _is_collection(known[name]):
                self._collections(rows, leaves({name: known[name]}), name, value)
            else:
                self._fields(rows, leaves({name: known[name]}), name, value)
        rest = {name: value for name, value in known.items() if name not in args}
        rows.now += map(self._read, leaves(rest))
        rows.changes.sort(key=lambda change: _ORDER[change.kind])
        return rows

    def change(self, old: Leaf | None, new: Leaf | None) -> Change:
        """One row; either side may be missing."""
        present = new or old
        if present is None:
            raise ValueError("a change has at least one side")
        before = None if old is None else self.cell(old)
        after = None if new is None else self.cell(new)
        if before and after and before.said == after.said:
            before, after = _told(before.exact), _told(after.exact)
        elif before and not (after and after.text == before.settled.text):
            before = _plain(before)
        kind, path = _kind(old, new), present.path
        return Change(kind, self.label(path), path, before, after)

    def _fields(self, rows: Rows, olds: list[Leaf], name: str, value: Any) -> None:
        old_of = {leaf.path: leaf for leaf in olds}
        for new in leaves({name: value}):
            self._place(rows, old_of.pop(new.path, None), new)
        gone = [leaf for leaf in old_of.values() if not is_nothing(leaf.value)]
        rows.changes += [self.change(leaf, None) for leaf in gone]

    def _collections(self, rows: Rows, olds: list[Leaf], name: str, value: Any) -> None:
        left = Counter(_mark(leaf.value) for leaf in olds)
        for new in leaves({name: value}):
            stays = left[_mark(new.value)] > 0
            left[_mark(new.value)] -= stays
            self._place(rows, new if stays else None, new)
        for old in olds:
            if left[_mark(old.value)] > 0:
                left[_mark(old.value)] -= 1
                rows.changes.append(self.change(old, None))

    def _place(self, rows: Rows, old: Leaf | None, new: Leaf) -> None:
        if old is not None and _mark(old.value) == _mark(new.value):
            rows.unchanged.append(self._row(new))
        else:
            rows.changes.append(self.change(old, new))

    def _row(self, leaf: Leaf) -> Row:
        return Row(self.label(leaf.path), leaf.path, self.cell(leaf))

    def _read(self, leaf: Leaf) -> Row:
        return Row(self.label(leaf.path), leaf.path, self.read(leaf))


def _kind(old: Leaf | None, new: Leaf | None) -> ChangeKind:
    if new is None or (is_nothing(new.value) and not _was_nothing(old)):
        return "removed"
    return "added" if old is None or is_nothing(old.value) else "changed"


def _told(cell: Cell) -> Cell:
    """With its type beside it, whatever the schema says: it is all that changed."""
    kind = "as text" if cell.kind == "text" else cell.kind
    return replace(cell, kind=kind, sure=False)


def _plain(cell: Cell) -> Cell:
    """What was empty is none, however it was: nothing runs on what was."""
    return cell.settled if cell.kind in ("nothing", "empty text") else cell


def _was_nothing(old: Leaf | None) -> bool:
    # Without a leaf of its own an emptied group or list had leaves inside.
    return old is not None and is_nothing(old.value)


def _is_collection(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and not any(map(_is_group, value))


def _is_group(value: Any) -> bool:
    return isinstance(value, dict | list)


def _mark(value: Any) -> str:
    return json.dumps(value, sort_keys=True)

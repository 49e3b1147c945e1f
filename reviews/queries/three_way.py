"""An edit beside what it replaces: the state now, the proposal, and the edit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policies import tools
from reviews.models import Revision
from reviews.presenters.common import Subject
from reviews.presenters.leaves import Leaf, leaves
from reviews.presenters.shapes import Cell, Change, Row

from . import showing


@dataclass(frozen=True, slots=True)
class ThreeWay:
    """One argument that the edit changes; None is "none"."""

    label: str
    now: Cell | None
    proposed: Cell | None
    yours: Cell | None


def rows(
    revision: Revision, edited: Mapping[str, Any], reading: Mapping[str, Any]
) -> list[ThreeWay]:
    """What differs between proposal and edit; `now` is the reading's before-state,
    where it speaks of the same argument."""
    if revision.tool is None:
        return []
    subject = Subject(
        tools.definition(revision.tool),
        edited,
        revision.args,
        reading.get("labels", {}),
        conceal=showing.concealer(revision),
    )
    held = dict(_held(reading.get("before") or {}))
    found = subject.rows

    def row(one: Change | Row, proposed: Cell | None, yours: Cell | None) -> ThreeWay:
        leaf = held.get(one.path)
        now = subject.cell(leaf) if leaf is not None else None
        return ThreeWay(one.label, now, proposed, yours)

    return [
        *(row(one, one.cell, None) for one in found.now),  # no longer an argument
        *(row(one, one.before, one.after) for one in found.changes),
        *(row(one, None, one.cell) for one in found.other),  # not proposed at all
    ]


def _held(before: Mapping[str, Any]) -> Iterator[tuple[str, Leaf]]:
    """The leaves of the state now by path. Those of lists are left out: there the same
    place need not be the same entry."""
    for leaf in leaves(before):
        if "[" not in leaf.path:
            yield leaf.path, leaf

"""An edit beside what it replaces: the state now, the proposal, and the edit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policies import tools
from reviews.effects import describe
from reviews.models import Revision
from reviews.presenters import present
from reviews.presenters.arguments import Leaf, leaves
from reviews.presenters.common import Subject
from reviews.presenters.shapes import Cell, Change, Row


@dataclass(frozen=True, slots=True)
class ThreeWay:
    """One argument, or one balance, that the edit changes; None is "none"."""

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
        conceal=describe.concealer(revision),
    )
    held = dict(_held(reading.get("before") or {}))
    found = subject.rows

    def row(one: Change | Row, proposed: Cell | None, yours: Cell | None) -> ThreeWay:
        leaf = held.get(one.path)
        now = subject.cell(leaf) if leaf is not None else None
        return ThreeWay(one.label, now, proposed, yours)

    return [
        *_balances(revision, edited, reading),
        *(row(one, one.cell, None) for one in found.now),  # no longer an argument
        *(row(one, one.before, one.after) for one in found.changes),
        *(row(one, None, one.cell) for one in found.other),  # not proposed at all
    ]


def _balances(
    revision: Revision, edited: Mapping[str, Any], reading: Mapping[str, Any]
) -> Iterator[ThreeWay]:
    """What the tool declares that its amount moves, after each of the two."""
    definition = tools.definition(revision.known_tool)
    paths = {balance.fact for balance in definition.balances}
    if not paths:
        return

    def moved(args: Mapping[str, Any]) -> dict[str, Change]:
        shown = present(
            definition,
            args,
            before=reading.get("before"),
            facts=describe.facts_of(revision, reading),
        )
        return {one.path: one for one in shown.changes if one.path in paths}

    proposed = moved(revision.args)
    for path, change in moved(edited).items():
        other = proposed.get(path)
        if other is not None and other.after != change.after:
            yield ThreeWay(change.label, change.before, other.after, change.after)


def _held(before: Mapping[str, Any]) -> Iterator[tuple[str, Leaf]]:
    """The leaves of the state now by path. Those of lists are left out: there the same
    place need not be the same entry."""
    for leaf in leaves(before):
        if "[" not in leaf.path:
            yield leaf.path, leaf

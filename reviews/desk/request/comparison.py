"""Comparisons for the review page: an edit beside the proposal and the state now, and
two readings of the business state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policies import tools
from reviews.effects import describe
from reviews.effects.describe import Moved, concealer
from reviews.effects.wording import scalar
from reviews.models import Revision
from reviews.presenters import present
from reviews.presenters.arguments import Leaf, leaves
from reviews.presenters.common import Subject
from reviews.presenters.shapes import Cell, Change, Row


@dataclass(frozen=True, slots=True)
class ThreeWay:
    """One argument or balance that the edit changes; None is shown as "none"."""

    label: str
    now: Cell | None
    proposed: Cell | None
    yours: Cell | None


def rows(
    revision: Revision, edited: Mapping[str, Any], reading: Mapping[str, Any]
) -> list[ThreeWay]:
    """What differs between proposal and edit. `now` is the value in the reading's
    before-state, where it has the same argument."""
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
        *(row(one, one.cell, None) for one in found.now),  # the edit removes it
        *(row(one, one.before, one.after) for one in found.changes),
        *(row(one, None, one.cell) for one in found.other),  # the edit adds it
    ]


def _balances(
    revision: Revision, edited: Mapping[str, Any], reading: Mapping[str, Any]
) -> Iterator[ThreeWay]:
    """The balances that the tool's amount moves, after the proposal and after the
    edit."""
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
    """The leaves of the before-state by path, without those in lists: the same index
    need not be the same entry."""
    for leaf in leaves(before):
        if "[" not in leaf.path:
            yield leaf.path, leaf


Reading = Mapping[str, Any]


def moved_rows(revision: Revision, was: Reading, now: Reading) -> list[Moved]:
    """The fields of the before-state that differ between two readings, by label."""
    before, after = was.get("before") or {}, now.get("before") or {}
    labels = {**(was.get("labels") or {}), **(now.get("labels") or {})}
    hidden = tools.definition(revision.tool).sensitive if revision.tool else []
    conceal = concealer(revision)

    def text(state: Mapping[str, Any], name: str) -> str | None:
        if name not in state:
            return None
        said = _said(state[name])
        return str(conceal(said)) if name in hidden else said

    return [
        Moved(str(labels.get(name, name)), text(before, name), text(after, name))
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_said(one) for one in value) or "nothing"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_said(one)}" for key, one in value.items())
    return scalar(value)

"""Comparisons for the request page: an edit beside the proposal and the state now, with
what would follow from it, and two readings of the business state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from policies import tools
from reviews.effects import describe
from reviews.effects.changes import ArgumentChange
from reviews.effects.describe import build_concealer
from reviews.effects.wording import format_scalar
from reviews.models import RequestVersion, Revision
from reviews.presenters import Presentation, build_argument_subject
from reviews.presenters.arguments import Leaf, collect_leaves
from reviews.presenters.shapes import Cell, FieldChange, SentencePart, ValueRow


@dataclass(frozen=True, slots=True)
class ThreeWayRow:
    """One argument or balance that the edit changes; None is shown as "none"."""

    label: str
    now: Cell | None
    proposed: Cell | None
    yours: Cell | None


@dataclass(frozen=True, slots=True)
class EditComparison:
    """An edit beside its proposal: what differs, and the effect of the edit as one
    sentence, with the record that was read for it."""

    rows: Sequence[ThreeWayRow] = ()
    effect: Sequence[SentencePart] = ()


class PreviewLine(NamedTuple):
    """One sentence of a preview; screen readers are told `loud` ones."""

    code: str
    text: str
    loud: bool = False


class PreviewError(NamedTuple):
    """One error, with the label of its field."""

    label: str
    message: str


@dataclass(frozen=True, slots=True)
class EditPreview:
    """The preview as `#check` shows it."""

    problem: str = ""
    above: Sequence[PreviewError] = ()
    lines: Sequence[PreviewLine] = ()
    rows: Sequence[ThreeWayRow] = ()
    effect: Sequence[SentencePart] = ()  # of the edit; the title stays the proposal's
    now_known: bool = False
    read_from: str = ""
    pressed: bool = False  # by the button, not a pause in typing: it gets the focus
    # The version that the edit makes, if the editor's vote would count for it.
    made: RequestVersion | None = None

    @property
    def say(self) -> str:
        """What a screen reader announces: never foreign text."""
        loud = [line.text for line in self.lines if line.loud]
        return " ".join(loud) or ("Needs correction." if self.problem else "")


def compare_edit(
    revision: Revision, edited: Mapping[str, Any], reading: Mapping[str, Any]
) -> EditComparison:
    """Compare the proposal with its edit. `now` of a row is the value in the reading's
    before-state, where it has the same argument."""
    if revision.tool is None:
        return EditComparison()
    subject = build_argument_subject(
        tools.load_definition(revision.tool),
        edited,
        revision.args,
        labels=reading.get("labels", {}),
        conceal=describe.build_concealer(revision),
    )
    held = dict(_list_leaves_by_path(reading.get("before") or {}))
    compared = subject.rows

    def row(
        field: FieldChange | ValueRow, proposed: Cell | None, yours: Cell | None
    ) -> ThreeWayRow:
        leaf = held.get(field.path)
        now = subject.cell(leaf) if leaf is not None else None
        return ThreeWayRow(field.label, now, proposed, yours)

    yours = describe.present_arguments(revision, edited, reading)
    rows = [
        *_build_record_rows(revision, yours),
        # The edit removes it.
        *(row(field, field.cell, None) for field in compared.now),
        *(row(field, field.before, field.after) for field in compared.changes),
        # The edit adds it.
        *(row(field, None, field.cell) for field in compared.other),
    ]
    return EditComparison(rows, yours.sentence)


def _build_record_rows(
    revision: Revision, yours: Presentation
) -> Iterator[ThreeWayRow]:
    """What the edit makes of the record: the balances that the tool's amount moves, and
    the fields that are others because it names another record. The proposal is shown
    with the record that was read for it."""
    definition = tools.load_definition(revision.known_tool)
    paths = {balance.fact for balance in definition.balances}
    proposed = describe.present_arguments(revision, revision.args, revision.reading)
    moved = {change.path: change for change in proposed.changes if change.path in paths}
    for change in yours.changes:
        other = moved.get(change.path)
        if other is not None and other.after != change.after:
            yield ThreeWayRow(change.label, change.before, other.after, change.after)
    known = {row.path: row for row in (*proposed.top, *proposed.now)}
    rows_by_path = {row.path: row for row in (*yours.top, *yours.now)}
    for path in dict.fromkeys([*rows_by_path, *known]):
        was, row = known.get(path), rows_by_path.get(path)
        cell, old = row.cell if row else None, was.cell if was else None
        if path not in paths and cell != old:
            label = row.label if row else was.label if was else path
            yield ThreeWayRow(label, cell, old, cell)


def _list_leaves_by_path(before: Mapping[str, Any]) -> Iterator[tuple[str, Leaf]]:
    """The leaves of the before-state by path, without those in lists: the same index
    need not be the same entry."""
    for leaf in collect_leaves(before):
        if "[" not in leaf.path:
            yield leaf.path, leaf


StoredReading = Mapping[str, Any]


def build_moved_rows(
    revision: Revision, was: StoredReading, now: StoredReading
) -> list[ArgumentChange]:
    """The fields of the before-state that differ between two readings, by label."""
    before, after = was.get("before") or {}, now.get("before") or {}
    labels = {**(was.get("labels") or {}), **(now.get("labels") or {})}
    hidden = tools.load_definition(revision.tool).sensitive if revision.tool else []
    conceal = build_concealer(revision)

    def text(state: Mapping[str, Any], name: str) -> str | None:
        if name not in state:
            return None
        value = _format_value(state[name])
        return str(conceal(value)) if name in hidden else value

    return [
        ArgumentChange(
            str(labels.get(name, name)), text(before, name), text(after, name)
        )
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_format_value(item) for item in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_format_value(item)}" for key, item in value.items())
    return format_scalar(value)

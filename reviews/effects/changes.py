"""What differs between two revisions of a proposal, in Counterseal's words."""

from __future__ import annotations

from dataclasses import dataclass

from policies import tools
from reviews.models import Revision
from reviews.presenters import build_argument_subject, compare_versions

from .describe import build_concealer, build_presentation, list_warnings


@dataclass(frozen=True, slots=True)
class ArgumentChange:
    """One argument that differs between two versions; None is shown as `none`."""

    label: str
    before: str | None
    after: str | None


def list_page_changes(before: Revision, after: Revision) -> list[ArgumentChange]:
    """List every difference between what the page shows of two revisions in our own
    words: the arguments, then the record as it was read, figures and warnings."""
    changes = list_argument_changes(before, after)
    pairs = {(change.before, change.after) for change in changes}
    was, now = _list_shown_values(before), _list_shown_values(after)
    for label in dict.fromkeys([*now, *was]):
        pair = was.get(label), now.get(label)
        if pair[0] != pair[1] and pair not in pairs:
            changes.append(ArgumentChange(label, *pair))
    return changes


def list_argument_changes(before: Revision, after: Revision) -> list[ArgumentChange]:
    """List every argument that differs, destructive changes first, with their labels.
    Empty for a tool that is not registered."""
    if after.tool is None:
        return []
    subject = build_argument_subject(
        tools.load_definition(after.tool),
        after.args,
        before.args,
        labels=after.reading.get("labels", {}),
        conceal=build_concealer(after),
    )
    return [
        ArgumentChange(
            change.label,
            change.before.typed_text if change.before else None,
            change.after.typed_text if change.after else None,
        )
        for change in compare_versions(subject)
    ]


def _list_shown_values(revision: Revision) -> dict[str, str]:
    """What the page shows of a revision beside its arguments, by label."""
    shown = build_presentation(revision)
    if shown is None:
        return {}
    values = {row.label: row.cell.typed_text for row in (*shown.top, *shown.now)}
    for change in shown.changes:
        if change.before is not None:
            values[f"{change.label} (current record)"] = change.before.typed_text
    for figure in shown.size:
        values.setdefault(figure.label, figure.value)
    facts = [tag.text for tag in shown.tags if not tag.loud]
    warnings = [warning.text for warning in list_warnings(revision, shown)]
    values |= {"Facts": "; ".join(facts), "Warnings": "; ".join(warnings)}
    return {label: text for label, text in values.items() if text}

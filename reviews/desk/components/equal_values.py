"""Which redacted values in the agent's texts also appear in the clear on this page, and
where.

A redaction chip shows only its tag, so a reader cannot compare what a customer asked
for with what is proposed. This module computes the tags of the values that the page
prints anyway and labels the chips that match. It reveals nothing that the page does not
already show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from reviews import redaction
from reviews.presenters import Presentation
from reviews.presenters.shapes import Cell, ValueRow
from reviews.presenters.views import GroupView

LONGEST_VALUE = 200  # characters; a longer value is neither an address nor a number
MOST_VALUES = 200  # the first values of a page
# The headings of the columns of the comparison.
AFTER, BEFORE, CURRENT = "after", "before", "in the current record"


def label_equal_values(
    shown: Presentation, texts: Iterable[str], key: bytes
) -> dict[str, str]:
    """The chips in these texts that match a value on the page, each with that value's
    label.

    `key` is the redaction key of the run. The proposed value is preferred over the one
    it replaces. A tag that two different values of the page share gets no label.
    """
    wanted = {chip for text in texts for chip in redaction.list_chips(text)}
    labels: dict[str, str] = {}
    forms: dict[str, set[str]] = {}
    for label, value in islice(_list_page_values(shown), MOST_VALUES) if wanted else ():
        for chip, form in redaction.build_possible_chips(value, key).items():
            if chip in wanted:
                labels.setdefault(chip, label)
                forms.setdefault(chip, set()).add(form)
    return {chip: label for chip, label in labels.items() if len(forms[chip]) == 1}


def _list_page_values(shown: Presentation) -> Iterator[tuple[str, str]]:
    """The values shown in the clear, with their labels: proposed first, then unchanged,
    then previous."""
    for change in shown.changes:
        yield from _list_clear_value(f"{change.label} {AFTER}", change.after)
    groups = (view.rows for view in shown.views if isinstance(view, GroupView))
    for rows in (shown.other, *groups, shown.unchanged):
        yield from _list_row_values(rows)
    for change in shown.changes:
        yield from _list_clear_value(f"{change.label} {BEFORE}", change.before)
    for rows in (shown.top, shown.now):
        yield from _list_row_values(rows, f" {CURRENT}")


def _list_row_values(
    rows: Iterable[ValueRow], more: str = ""
) -> Iterator[tuple[str, str]]:
    for row in rows:
        yield from _list_clear_value(row.label + more, row.cell)


def _list_clear_value(label: str, cell: Cell | None) -> Iterator[tuple[str, str]]:
    """The value, unless it is concealed, empty or too long."""
    if cell is not None and not cell.hides and 0 < len(cell.text) <= LONGEST_VALUE:
        yield label, cell.text

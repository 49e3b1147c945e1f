"""Which redacted values of the agent's texts this page shows in the clear, and where.

A chip says no more than its tag: nobody can compare what a customer asked for with what
is proposed. Here the values that stand on the page are given the tags that they would
have, so that nothing is told which is not there to be read already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from reviews import redaction
from reviews.presenters import Presentation
from reviews.presenters.shapes import Cell, Row
from reviews.presenters.views import Group

LONGEST = 200  # characters of a value; what is longer is no address and no number
MOST = 200  # values of a page, the first ones
# As the columns of the comparison are called.
AFTER, BEFORE, CURRENT = "after", "before", "in the current record"


def named(shown: Presentation, texts: Iterable[str], key: bytes) -> dict[str, str]:
    """The chips in these texts that stand for a value of the page, each with its label.

    The proposed value is named before the one that it replaces. A tag that two
    different values of the page share names neither.
    """
    wanted = {chip for text in texts for chip in redaction.chips_of(text)}
    labels: dict[str, str] = {}
    forms: dict[str, set[str]] = {}
    for label, value in islice(_values(shown), MOST) if wanted else ():
        for chip, form in redaction.chips_for(value, key).items():
            if chip in wanted:
                labels.setdefault(chip, label)
                forms.setdefault(chip, set()).add(form)
    return {chip: label for chip, label in labels.items() if len(forms[chip]) == 1}


def _values(shown: Presentation) -> Iterator[tuple[str, str]]:
    """What stands in the clear, by label: what is proposed, what stays, what was."""
    for change in shown.changes:
        yield from _clear(f"{change.label} {AFTER}", change.after)
    groups = (view.rows for view in shown.views if isinstance(view, Group))
    for rows in (shown.other, *groups, shown.unchanged):
        yield from _of(rows)
    for change in shown.changes:
        yield from _clear(f"{change.label} {BEFORE}", change.before)
    for rows in (shown.top, shown.now):
        yield from _of(rows, f" {CURRENT}")


def _of(rows: Iterable[Row], more: str = "") -> Iterator[tuple[str, str]]:
    for row in rows:
        yield from _clear(row.label + more, row.cell)


def _clear(label: str, cell: Cell | None) -> Iterator[tuple[str, str]]:
    """A value that everybody who opens the page reads; none that stands concealed."""
    if cell is not None and not cell.hides and 0 < len(cell.text) <= LONGEST:
        yield label, cell.text

"""An appointment, an invitation or a ticket: when, who is asked, who can see it.
Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from . import moments
from .arguments import format_count
from .common import Subject, add_utc_note, build_loud_tags, build_presentation
from .shapes import Presentation, Tag, ValueRow
from .views import GroupView

_PUBLIC = re.compile(r"public|everyone|everybody|anyone|world")


def show(subject: Subject) -> Presentation:
    """Present when it is, also in UTC; then who is asked, and what it says."""
    when = [*map(add_utc_note, subject.listed("start", "end"))]
    when += subject.listed("zone", "repeats")
    who = [_add_guest_warning(subject, row) for row in subject.listed("who")]
    what = subject.listed("title", "visibility", "text")
    views = [
        GroupView("When", tuple(when)),
        GroupView("Guests", tuple(who)),
        GroupView("Content", tuple(what)),
    ]
    return build_presentation(subject, *_build_schedule_tags(subject, who), views=views)


def _build_schedule_tags(subject: Subject, who: list[ValueRow]) -> Iterator[Tag]:
    outside = sum(bool(row.warns) for row in who)
    starts, ends = (
        moments.parse_moment(subject.text(role)) for role in ("start", "end")
    )
    zoned = subject.path("zone") or (starts and starts.tzinfo)
    yield from build_loud_tags(
        (outside, f"{format_count(outside, 'guest')} outside the company"),
        (subject.words("repeats"), "Repeats"),
        (any(map(_PUBLIC.search, subject.words("visibility"))), "Everyone can see it"),
        (subject.path("start") and not zoned, "No time zone"),
        (_is_backwards(starts, ends), "Ends before it begins"),
    )


def _is_backwards(starts: datetime | None, ends: datetime | None) -> bool:
    if starts is None or ends is None or bool(starts.tzinfo) != bool(ends.tzinfo):
        return False
    return ends < starts


def _add_guest_warning(subject: Subject, row: ValueRow) -> ValueRow:
    outside = "@" in row.cell.text and not subject.is_inside(row.cell.text)
    return replace(row, warns=("Outside the company",)) if outside else row

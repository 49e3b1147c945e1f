"""An appointment, an invitation or a ticket: when, who is asked, who can see it.
Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from policies.effect_classes import Recipients

from . import moments
from .common import Subject, count, present, tagged
from .shapes import Presentation, Row, Tag
from .views import Group

_PUBLIC = re.compile(r"public|everyone|everybody|anyone|world")


def show(subject: Subject) -> Presentation:
    """Present when it is, also in UTC; then who is asked, and what it says."""
    when = [_dated(row) for row in subject.listed("start", "end")]
    when += subject.listed("zone", "repeats")
    who = [_placed(subject, row) for row in subject.listed("who")]
    what = subject.listed("title", "visibility", "text")
    groups = [
        Group("When", tuple(when)),
        Group("Who is asked", tuple(who)),
        Group("What it says", tuple(what)),
    ]
    views = [group for group in groups if group.rows]
    return present(subject, *_tags(subject, who), views=views)


def _tags(subject: Subject, who: list[Row]) -> Iterator[Tag]:
    outside = sum(bool(row.warns) for row in who)
    starts, ends = (moments.read(subject.text(role)) for role in ("start", "end"))
    zoned = subject.path("zone") or (starts and starts.tzinfo)
    yield from tagged(
        (outside, f"{count(outside, 'guest')} outside the company"),
        (subject.words("repeats"), "Repeats"),
        (any(map(_PUBLIC.search, subject.words("visibility"))), "Everybody can see it"),
        (subject.path("start") and not zoned, "No time zone"),
        (_backwards(starts, ends), "Ends before it begins"),
    )


def _backwards(starts: datetime | None, ends: datetime | None) -> bool:
    if starts is None or ends is None or bool(starts.tzinfo) != bool(ends.tzinfo):
        return False
    return ends < starts


def _dated(row: Row) -> Row:
    """Note the time in UTC on a moment with an offset."""
    said = moments.in_utc(row.cell.text)
    return replace(row, note=said) if said else row


def _placed(subject: Subject, row: Row) -> Row:
    """Warn of a guest who is in none of the tool's recipient classes."""
    forms = [one.when for one in subject.definition.classes or ()]
    known = [form for form in forms if isinstance(form, Recipients)]
    guest = "@" in row.cell.text
    ours = any(f.matches({f.recipients[0]: [row.cell.text]}) for f in known)
    return replace(row, warns=("Outside the company",)) if guest and not ours else row

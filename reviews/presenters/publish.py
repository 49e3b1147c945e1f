"""What is published: where, for whom and when, compared with the live text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import compare, markup
from .common import Subject, present, tagged
from .shapes import Cell, Presentation, Row, Tag
from .views import Difference, FileChange, Group, View

_PUBLIC = re.compile(r"public|everyone|everybody|all\b|world|anyone|internet|unlisted")
_DELETES = re.compile(r"delete|remove|unpublish|take.?down|withdraw|retract")


def show(subject: Subject) -> Presentation:
    """Present the place and the audience, then the text compared with the live one."""
    rows = subject.listed("action", "where", "audience", "at", "embargo", "title")
    views: list[View] = [Group("Where and for whom", tuple(rows))] if rows else []
    views += _text(subject)
    return present(subject, *_tags(subject), views=views, used=_used(subject))


def _text(subject: Subject) -> Iterator[View]:
    text = subject.said("text")
    if not isinstance(text, str):
        return
    reading = markup.read(text) if markup.is_html(text) else None
    if reading is not None and reading.is_read:
        shown = Cell(reading.text, long=True)
        row = Row("As text", "text.read", shown, reading.summary, (), reading.addresses)
        yield Group("What it says", (row,))
    live = subject.known.get(subject.path("text"))
    if isinstance(live, str):
        hunks = compare.compare(live, text)
        name = subject.label(subject.path("text"))
        file = FileChange(name, hunks)
        yield Difference("Against what is live", (file,), subject.path("text"))


def _tags(subject: Subject) -> Iterator[Tag]:
    audience = subject.words("audience")
    yield from tagged(
        (any(map(_DELETES.search, subject.words("action"))), "Deletes what is live"),
        (any(map(_PUBLIC.search, audience)), "Public audience"),
        (subject.words("embargo"), "Under an embargo"),
        (not audience, "Who may see it is not said"),
    )
    if not subject.words("at"):
        yield Tag("At once")


def _used(subject: Subject) -> tuple[str, ...]:
    return (subject.path("text"), "text") if subject.path("text") else ()

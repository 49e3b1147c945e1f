"""What is published: where, for whom and when, compared with the live text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import compare, markup
from .common import Subject, build_loud_tags, build_presentation
from .shapes import Cell, Presentation, Tag, ValueRow
from .views import DedicatedView, DifferenceView, FileChange, GroupView

_PUBLIC = re.compile(r"public|everyone|everybody|all\b|world|anyone|internet|unlisted")
_DELETES = re.compile(r"delete|remove|unpublish|take.?down|withdraw|retract")


def show(subject: Subject) -> Presentation:
    """Present the place and the audience, then the text compared with the live one."""
    rows = subject.listed("action", "where", "audience", "at", "embargo", "title")
    path = subject.path("text")
    return build_presentation(
        subject,
        *_build_publish_tags(subject),
        views=[
            GroupView("Place and audience", tuple(rows)),
            *_build_text_views(subject),
        ],
        used=(path, "text") if path else (),
    )


def _build_text_views(subject: Subject) -> Iterator[DedicatedView]:
    text = subject.value("text")
    if not isinstance(text, str):
        return
    reading = markup.parse_html(text) if markup.is_html(text) else None
    if reading is not None and reading.is_read:
        shown = Cell(reading.text, long=True, outgoing=True)
        summary, hosts = reading.summary, reading.addresses
        row = ValueRow("As text", "text.read", shown, summary, also=hosts)
        yield GroupView("Content", (row,))
    path = subject.path("text")
    live = subject.known.get(path)
    if isinstance(live, str):
        hunks = compare.compare_texts(live, text, outgoing=True)
        file = FileChange(subject.label(path), hunks)
        yield DifferenceView("Compared with the live version", (file,), path)


def _build_publish_tags(subject: Subject) -> Iterator[Tag]:
    audience = subject.words("audience")
    deletes = any(map(_DELETES.search, subject.words("action")))
    yield from build_loud_tags(
        (deletes, "Deletes the live version"),
        (any(map(_PUBLIC.search, audience)), "Public audience"),
        (subject.words("embargo"), "Under an embargo"),
        (not audience, "No audience given"),
    )
    if not subject.words("at"):
        yield Tag("Immediately")

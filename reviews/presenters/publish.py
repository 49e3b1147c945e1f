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
    views: list[DedicatedView] = (
        [GroupView("Place and audience", tuple(rows))] if rows else []
    )
    views += _build_text_views(subject)
    return build_presentation(
        subject,
        *_build_publish_tags(subject),
        views=views,
        used=_list_shown_fields(subject),
    )


def _build_text_views(subject: Subject) -> Iterator[DedicatedView]:
    text = subject.value("text")
    if not isinstance(text, str):
        return
    reading = markup.parse_html(text) if markup.is_html(text) else None
    if reading is not None and reading.is_read:
        shown = Cell(reading.text, long=True, outgoing=True)
        row = ValueRow(
            "As text", "text.read", shown, reading.summary, (), reading.addresses
        )
        yield GroupView("Content", (row,))
    live = subject.known.get(subject.path("text"))
    if isinstance(live, str):
        hunks = compare.compare_texts(live, text, outgoing=True)
        name = subject.label(subject.path("text"))
        file = FileChange(name, hunks)
        yield DifferenceView(
            "Compared with the live version", (file,), subject.path("text")
        )


def _build_publish_tags(subject: Subject) -> Iterator[Tag]:
    audience = subject.words("audience")
    yield from build_loud_tags(
        (
            any(map(_DELETES.search, subject.words("action"))),
            "Deletes the live version",
        ),
        (any(map(_PUBLIC.search, audience)), "Public audience"),
        (subject.words("embargo"), "Under an embargo"),
        (not audience, "No audience given"),
    )
    if not subject.words("at"):
        yield Tag("Immediately")


def _list_shown_fields(subject: Subject) -> tuple[str, ...]:
    return (subject.path("text"), "text") if subject.path("text") else ()

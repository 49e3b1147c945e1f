"""The only way for text from agents, tools and outside to reach a page.

All of it goes through `presenters.inert` and is escaped here or in
`desk/components/_untrusted.html`, even where a page has switched escaping off.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from itertools import groupby
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from reviews.presenters import addressed, inert, moments

from .desk import moment

register = template.Library()

# The HTML of each kind of segment; the text and the note are always escaped.
_SEGMENT_HTML = {
    "plain": "{0}",
    "hidden": '<span class="ctl">⟦{0}⟧</span>',
    "mixed": '<u class="mixed">{0}</u>',
    "redacted": '<span class="redacted">{0}</span>',
    "same": '<span class="redacted">{0}{1}]</span>',
    "cut": '<span class="ctl">⋯ {0} ⋯</span>',
    "read": ' <span class="ctl">a mail program shows <bdi>{0}</bdi></span>',
}
# The space lets a line break before a note instead of inside a word of it.
_NOTE = '<span class="ctl"> {0}</span>'
_CHIP = '<b class="chip">{0}</b>'
# The rest of an address or a number after a marked word.
_GOES_ON = re.compile(r"(?:\S*[^\s.,;:!?)\]}>\"'])?")


@register.simple_tag
def untrusted(
    text: Any,
    inline: bool = False,
    chips: bool = True,
    same: inert.EqualValues = inert.NO_EQUAL_VALUES,
    outgoing: bool = False,
) -> SafeString:
    """A whole text in blocks, for use inside `.foreign`; `inline=True` for one line.

    Pass `chips=False` where nothing is ever redacted: an agent may write text that
    looks like a redaction. `same` names what the page shows in clear for a redacted
    value. An `outgoing` text is for a reader to whom the effect sends it.
    """
    if inline:
        return _render_isolated(inert.build_line_segments(str(text), chips=chips))
    display = inert.build_display(str(text), chips=chips, same=same, outgoing=outgoing)
    shown = render_to_string("desk/components/_untrusted.html", {"display": display})
    return mark_safe(shown.rstrip("\n"))  # noqa: S308  # a template of ours, escaped


@register.simple_tag
def cell(value: Any) -> SafeString:
    """A `Cell` on one line.

    The type is shown where the text alone leaves it open, and a mark where the text
    addresses the reviewer or imitates one of our domains.
    """
    if value.at:
        return _render_moment(value.at)
    shown = _render_isolated(inert.build_line_segments(value.text, chips=value.hides))
    if value.raw:
        shown = format_html('<span title="{}">{}</span>', value.raw, shown)
    if value.kind == "text" and addressed.find_addressed_lines(
        [value.text], outgoing=value.outgoing
    ):
        shown = format_html(
            "{}{}", shown, render_to_string("desk/components/_manipulation_tag.html")
        )
    if value.imitates:
        shown = format_html(
            "{}{}", shown, render_to_string("desk/components/_imitation.html")
        )
    if value.repeats_kind:
        return format_html('<span class="lit">{}</span>', value.text)
    if value.hides or not value.badge:
        return shown
    return format_html('{} <span class="lit">{}</span>', shown, value.badge)


def _render_moment(at: datetime | date) -> SafeString:
    """A moment in the reader's zone; a day is the same in every zone."""
    if isinstance(at, datetime):
        return format_html("{}", moment(at))
    text = moments.format_moment(at)
    return format_html('<time datetime="{}">{}</time>', at.isoformat(), text)


@register.simple_tag
def segments(pieces: Iterable[inert.TextSegment]) -> SafeString:
    """Segments one after another, without any character of ours between them.

    The note on a marked word follows the whole address or number that the word is part
    of.
    """
    return format_html_join("", "{}", ((piece,) for piece in _render_segments(pieces)))


def _render_segments(pieces: Iterable[inert.TextSegment]) -> Iterator[SafeString]:
    notes: dict[str, None] = {}  # of an address or number that goes on
    for segment in pieces:
        text = segment.text
        if notes and segment.kind == "plain":
            goes_on = _GOES_ON.match(text)
            end = goes_on.end() if goes_on else 0
            yield format_html("{}", text[:end])
            if end == len(text):
                continue
            text = text[end:]
        if notes and segment.kind != "mixed":
            yield from _render_notes(notes)
            notes = {}
        yield format_html(
            _SEGMENT_HTML[segment.kind], text, _render_equal_value(segment)
        )
        notes |= {segment.note: None} if segment.note else {}
    yield from _render_notes(notes)


def _render_notes(notes: Iterable[str]) -> Iterator[SafeString]:
    return (format_html(_NOTE, note) for note in notes)


def _render_equal_value(segment: inert.TextSegment) -> SafeString | str:
    """The name of an equal value, isolated because a label may also be an agent's
    word."""
    return _render_isolated(inert.build_chip(segment.equals)) if segment.equals else ""


_LINE = (
    '<div class="ln {0}"><span class="n">{1}</span><span class="n">{2}</span>'
    '<span class="s">{3}</span><span class="t">{4}{5}</span></div>'
)
_MORE = '<details class="fold"><summary>{0} {1} lines</summary>{2}</details>'
_SIGNS = {"removed": "\u2212", "added": "+"}
_LONG_LINE = 1000  # characters; a longer line is folded like any long text
_FIRST, _LAST = 150, 10  # lines of a run that are always in sight


@register.simple_tag
def lines(rows: Iterable[Any]) -> SafeString:
    """The lines of a difference, with the words that differ marked.

    Not a template, because a file has thousands of lines. The middle of a long run is
    one folded block.
    """
    runs = groupby(rows, key=lambda line: line.kind)
    drawn = ((piece,) for kind, run in runs for piece in _render_run(kind, list(run)))
    return format_html_join("", "{}", drawn)


def _render_run(kind: str, rows: list[Any]) -> Iterator[SafeString]:
    if len(rows) <= _FIRST + _LAST:
        yield from map(_render_line, rows)
        return
    between = rows[_FIRST:-_LAST]
    text = _render_tokens("\n".join(line.text for line in between), "\n\t")
    numbers = [between[0].old or "", between[0].new or ""]
    block = format_html(
        _LINE, kind, *numbers, _render_sign(kind), _wrap_in_bdi(text), ""
    )
    word = "more unchanged" if kind == "same" else f"more {kind}"
    yield from map(_render_line, rows[:_FIRST])
    yield format_html(_MORE, len(between), word, block)
    yield from map(_render_line, rows[-_LAST:])


def _render_line(line: Any) -> SafeString:
    speaks = (
        render_to_string("desk/components/_manipulation_tag.html")
        if line.speaks
        else ""
    )
    numbers = [line.old or "", line.new or ""]
    return format_html(
        _LINE,
        line.kind,
        *numbers,
        _render_sign(line.kind),
        _render_line_text(line),
        speaks,
    )


def _render_sign(kind: str) -> SafeString | str:
    if kind not in _SIGNS:
        return ""
    return format_html('{}<span class="vh">{} </span>', _SIGNS[kind], kind)


def _render_line_text(line: Any) -> SafeString:
    if len(line.text) > _LONG_LINE:
        return untrusted(line.text, chips=False)
    drawn = (
        (
            format_html(
                "<mark>{}</mark>" if differs else "{}", _render_tokens(piece, "\t")
            ),
        )
        for differs, piece in line.parts
    )
    return _wrap_in_bdi(format_html_join("", "{}", drawn))


def _render_tokens(text: str, plain: str) -> SafeString:
    return segments(inert.build_line_segments(text, plain=plain, chips=False))


@register.simple_tag
def chip(value: Any) -> SafeString:
    """A quoted value inside one of Counterseal's sentences: at most 60 characters."""
    return format_html(_CHIP, _render_isolated(inert.build_chip(str(value))))


def _render_isolated(pieces: Iterable[inert.TextSegment]) -> SafeString:
    return _wrap_in_bdi(segments(pieces))


def _wrap_in_bdi(drawn: SafeString) -> SafeString:
    """One block with a text direction of its own, in which htmx processes nothing."""
    return format_html('<bdi dir="auto" translate="no" hx-disable>{}</bdi>', drawn)


@register.simple_tag
def sentence(parts: Iterable[Any]) -> SafeString:
    """The effect sentence of a `Presentation`: Counterseal's words, and values as
    chips."""
    return format_html_join("", "{}", ((_render_part(part),) for part in parts))


def _render_part(part: Any) -> SafeString:
    if not part.value:
        return format_html("{}", part.text)
    if parts := getattr(part, "parts", ()):
        drawn = (
            (_render_isolated(pieces),) for pieces in inert.build_part_chips(parts)
        )
        return format_html(_CHIP, format_html_join(", ", "{}", drawn))
    if getattr(part, "untrusted", True):
        return chip(part.text)
    return format_html("<b>{}</b>", part.text)

"""The only way for text from agents, tools and outside to reach a page.

All of it goes through `presenters.inert` and is escaped here or in `_untrusted.html`,
even where a page has switched escaping off.
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
_DRAWN = {
    "plain": "{0}",
    "hidden": '<span class="ctl">⟦{0}⟧</span>',
    "mixed": '<u class="mixed">{0}</u>',
    "redacted": '<span class="redacted">{0}</span>',
    "same": '<span class="redacted">{0}{1}]</span>',
    "cut": '<span class="ctl">⋯ {0} ⋯</span>',
    "read": ' <span class="ctl">a mail program shows <bdi>{0}</bdi></span>',
}
_NOTE = '<span class="ctl">{0}</span>'
_CHIP = '<b class="chip">{0}</b>'
# The rest of an address or a number after a marked word.
_GOES_ON = re.compile(r"(?:\S*[^\s.,;:!?)\]}>\"'])?")


@register.simple_tag
def untrusted(
    text: Any,
    inline: bool = False,
    chips: bool = True,
    same: inert.Same = inert.NOTHING,
) -> SafeString:
    """A whole text in blocks, for use inside `.foreign`; `inline=True` for one line.

    Pass `chips=False` where nothing is ever redacted: an agent may write text that
    looks like a redaction. `same` names what the page shows in clear for a redacted
    value.
    """
    if inline:
        return _isolated(inert.tokens(str(text), chips=chips))
    display = inert.display(str(text), chips=chips, same=same)
    shown = render_to_string("reviews/_untrusted.html", {"display": display})
    return mark_safe(shown.rstrip("\n"))  # noqa: S308  # a template of ours, escaped


@register.simple_tag
def cell(value: Any) -> SafeString:
    """A `Cell` on one line.

    The type is shown where the text alone leaves it open, and a mark where the text
    addresses the reviewer.
    """
    if value.at:
        return _when(value.at)
    shown = _isolated(inert.tokens(value.text, chips=value.hides))
    if value.raw:
        shown = format_html('<span title="{}">{}</span>', value.raw, shown)
    if value.kind == "text" and addressed.speaking([value.text]):
        shown = format_html("{}{}", shown, render_to_string("reviews/_speaks.html"))
    if not value.badge:
        return shown
    return format_html('{} <span class="lit">{}</span>', shown, value.badge)


def _when(at: datetime | date) -> SafeString:
    """A moment in the reader's zone; a day is the same in every zone."""
    if isinstance(at, datetime):
        return format_html("{}", moment(at))
    said = moments.in_words(at)
    return format_html('<time datetime="{}">{}</time>', at.isoformat(), said)


@register.simple_tag
def segments(found: Iterable[inert.Segment]) -> SafeString:
    """Segments one after another, without any character of ours between them.

    The note on a marked word follows the whole address or number that the word is part
    of.
    """
    return format_html_join("", "{}", ((piece,) for piece in _drawn(found)))


def _drawn(found: Iterable[inert.Segment]) -> Iterator[SafeString]:
    notes: dict[str, None] = {}  # of an address or number that goes on
    for segment in found:
        text = segment.text
        if notes and segment.kind == "plain":
            goes_on = _GOES_ON.match(text)
            end = goes_on.end() if goes_on else 0
            yield format_html("{}", text[:end])
            if end == len(text):
                continue
            text = text[end:]
        if notes and segment.kind != "mixed":
            yield from _told(notes)
            notes = {}
        yield format_html(_DRAWN[segment.kind], text, _equals(segment))
        notes |= {segment.note: None} if segment.note else {}
    yield from _told(notes)


def _told(notes: Iterable[str]) -> Iterator[SafeString]:
    return (format_html(_NOTE, note) for note in notes)


def _equals(segment: inert.Segment) -> SafeString | str:
    """The name of an equal value, isolated because a label may also be an agent's
    word."""
    return _isolated(inert.chip(segment.equals)) if segment.equals else ""


_LINE = (
    '<div class="ln {0}"><span class="n">{1}</span><span class="n">{2}</span>'
    '<span class="s">{3}</span><span class="t">{4}{5}</span></div>'
)
_MORE = '<details class="fold"><summary>{0} {1} lines</summary>{2}</details>'
_SIGNS = {"removed": "\u2212", "added": "+"}
_HUGE = 1000  # characters; a longer line is folded like any long text
_FIRST, _LAST = 150, 10  # lines of a run that are always in sight


@register.simple_tag
def lines(found: Iterable[Any]) -> SafeString:
    """The lines of a difference, with the words that differ marked.

    Not a template, because a file has thousands of lines. The middle of a long run is
    one folded block.
    """
    runs = groupby(found, key=lambda line: line.kind)
    drawn = ((piece,) for kind, run in runs for piece in _run(kind, list(run)))
    return format_html_join("", "{}", drawn)


def _run(kind: str, found: list[Any]) -> Iterator[SafeString]:
    if len(found) <= _FIRST + _LAST:
        yield from map(_line, found)
        return
    between = found[_FIRST:-_LAST]
    text = _tokens("\n".join(line.text for line in between), "\n\t")
    numbers = [between[0].old or "", between[0].new or ""]
    block = format_html(_LINE, kind, *numbers, _sign(kind), _isolate(text), "")
    word = "more unchanged" if kind == "same" else f"more {kind}"
    yield from map(_line, found[:_FIRST])
    yield format_html(_MORE, len(between), word, block)
    yield from map(_line, found[-_LAST:])


def _line(line: Any) -> SafeString:
    speaks = render_to_string("reviews/_speaks.html") if line.speaks else ""
    numbers = [line.old or "", line.new or ""]
    return format_html(
        _LINE, line.kind, *numbers, _sign(line.kind), _text(line), speaks
    )


def _sign(kind: str) -> SafeString | str:
    if kind not in _SIGNS:
        return ""
    return format_html('{}<span class="vh">{} </span>', _SIGNS[kind], kind)


def _text(line: Any) -> SafeString:
    if len(line.text) > _HUGE:
        return untrusted(line.text, chips=False)
    drawn = (
        (format_html("<mark>{}</mark>" if differs else "{}", _tokens(piece, "\t")),)
        for differs, piece in line.parts
    )
    return _isolate(format_html_join("", "{}", drawn))


def _tokens(text: str, plain: str) -> SafeString:
    return segments(inert.tokens(text, plain=plain, chips=False))


@register.simple_tag
def chip(value: Any) -> SafeString:
    """A quoted value inside one of Holdpoint's sentences: at most 60 characters."""
    return format_html(_CHIP, _isolated(inert.chip(str(value))))


def _isolated(found: Iterable[inert.Segment]) -> SafeString:
    return _isolate(segments(found))


def _isolate(drawn: SafeString) -> SafeString:
    """One block with a text direction of its own, in which htmx processes nothing."""
    return format_html('<bdi dir="auto" hx-disable>{}</bdi>', drawn)


@register.simple_tag
def sentence(parts: Iterable[Any]) -> SafeString:
    """The effect sentence of a `Presentation`: Holdpoint's words, and values as
    chips."""
    return format_html_join("", "{}", ((_part(part),) for part in parts))


def _part(part: Any) -> SafeString:
    if not part.value:
        return format_html("{}", part.text)
    if parts := getattr(part, "parts", ()):
        drawn = ((_isolated(found),) for found in inert.chips(parts))
        return format_html(_CHIP, format_html_join(", ", "{}", drawn))
    if getattr(part, "untrusted", True):
        return chip(part.text)
    return format_html("<b>{}</b>", part.text)

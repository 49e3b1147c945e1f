"""The only way that text from agents, tools and outside reaches a page.

Everything goes through `presenters.inert` and is escaped here or in `_untrusted.html`,
also where a page has switched escaping off.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from reviews.presenters import inert

register = template.Library()

# How each kind of segment is drawn; the text and the note are always escaped.
_DRAWN = {
    "plain": "{0}",
    "hidden": '<span class="ctl">⟦{0}⟧</span>',
    "mixed": '<u class="mixed">{0}</u><span class="ctl">{1}</span>',
    "redacted": '<span class="redacted">{0}</span>',
    "cut": '<span class="ctl">⋯ {0} ⋯</span>',
}


@register.simple_tag
def untrusted(text: Any, inline: bool = False) -> SafeString:
    """A whole text in blocks, for inside `.foreign`; `inline=True` for one line."""
    if inline:
        return _isolated(inert.tokens(str(text)))
    shown = render_to_string(
        "reviews/_untrusted.html", {"display": inert.display(str(text))}
    )
    return mark_safe(shown.rstrip("\n"))  # noqa: S308  # a template of ours, escaped


@register.simple_tag
def segments(found: Iterable[inert.Segment]) -> SafeString:
    """Segments one after another, without a character of our own between them."""
    drawn = ((format_html(_DRAWN[s.kind], s.text, s.note),) for s in found)
    return format_html_join("", "{}", drawn)


@register.simple_tag
def code(parts: Iterable[tuple[bool, str]]) -> SafeString:
    """A line of a difference; what differs in it is marked."""
    drawn = (
        (format_html("<mark>{}</mark>" if differs else "{}", _tokens(piece)),)
        for differs, piece in parts
    )
    return format_html('<bdi dir="auto">{}</bdi>', format_html_join("", "{}", drawn))


def _tokens(text: str) -> SafeString:
    drawn: SafeString = segments(inert.tokens(text, plain="\t"))
    return drawn


@register.simple_tag
def chip(value: Any) -> SafeString:
    """A quoted value inside one of our sentences: at most 60 characters."""
    return format_html('<b class="chip">{}</b>', _isolated(inert.chip(str(value))))


def _isolated(found: Iterable[inert.Segment]) -> SafeString:
    """One block: its direction is its own, and htmx finds nothing in it."""
    return format_html('<bdi dir="auto" hx-disable>{}</bdi>', segments(found))


@register.simple_tag
def sentence(parts: Iterable[Any]) -> SafeString:
    """The effect sentence of a `Presentation`: our words, and values as chips."""
    return format_html_join("", "{}", ((_part(part),) for part in parts))


def _part(part: Any) -> SafeString:
    if not part.value:
        return format_html("{}", part.text)
    if getattr(part, "untrusted", True):
        return chip(part.text)
    return format_html("<b>{}</b>", part.text)

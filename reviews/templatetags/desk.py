"""The desk's small marks: icons, clocks, words. What agents wrote goes through
`inert`, never through here."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any

from django import template
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from reviews.queries import words

register = template.Library()
register.filter("short_hash", words.short_hash)
register.filter("span", words.span)


@register.simple_tag
def to(name: str) -> str:
    """The address of a page without arguments. Every page has a dozen of them, so they
    are looked up once a process."""
    return _address(name)


@cache
def _address(name: str) -> str:
    return reverse(name)


@register.simple_tag
def icon(name: str) -> SafeString:
    """A sign of the sprite; always beside its word, so hidden from screen readers."""
    return _icon(name)


@cache
def _icon(name: str) -> SafeString:
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>',
        static("icons.svg"),
        name,
    )


@register.simple_tag
@cache
def pie(quarters: int) -> SafeString:
    """A clock face with 0 to 4 quarters left."""
    return format_html('<span class="pie pie-{}" aria-hidden="true"></span>', quarters)


@register.filter
def clock(value: datetime | None) -> str:
    """The time of day in UTC, with the date when it is not today's page to guess."""
    return value.strftime("%H:%M:%S") if value else ""


@register.filter
def day(value: datetime | None) -> str:
    """A date as people say it: `20 November 2026`."""
    return f"{value.day} {value:%B %Y}" if value else ""


@register.simple_tag
def said(parts: Iterable[Any]) -> SafeString:
    """One of our own sentences: words, and values in bold."""
    return format_html_join(
        "", "{}", ((_bold(part.text) if part.value else part.text,) for part in parts)
    )


def _bold(text: str) -> SafeString:
    return format_html("<b>{}</b>", text)

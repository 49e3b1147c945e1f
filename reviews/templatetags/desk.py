"""The desk's small marks: icons, clocks, words. What agents wrote goes through
`inert`, never through here."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django import template
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString

from journal.clock import time_of_day
from reviews.effects import wording

register = template.Library()
register.filter("short_hash", wording.short_hash)
register.filter("span", wording.span)
register.filter("clock", time_of_day)


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
def day(value: datetime | None) -> str:
    """The date in the reader's zone, as people say it: `20 November 2026`."""
    if value is None:
        return ""
    local = timezone.localtime(value)
    return f"{local.day} {local:%B %Y}"


@register.filter
def at(value: datetime | None) -> SafeString | str:
    """The time of day in the reader's zone, as an element which says it in UTC, too."""
    return _time(value, time_of_day(value)) if value else ""


@register.filter
def moment(value: datetime | None) -> SafeString | str:
    """The time of day and the date as one element."""
    return _time(value, f"{time_of_day(value)}, {day(value)}") if value else ""


@register.simple_tag
def timed(said: str, moment: datetime | None) -> SafeString | str:
    """One of our own sentences in which the time of a moment is an element, too."""
    time = time_of_day(moment) if moment else ""
    if not time or time not in said:
        return conditional_escape(said)
    before, _, after = said.rpartition(time)
    return format_html("{}{}{}", before, at(moment), after)


def _time(value: datetime, said: str) -> SafeString:
    utc = value.astimezone(UTC)
    if timezone.get_current_timezone_name() == "UTC":
        return format_html('<time datetime="{}">{}</time>', utc.isoformat(), said)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        utc.isoformat(),
        f"{utc:%H:%M:%S}",
        said,
    )


@register.simple_tag
def said(parts: Iterable[Any]) -> SafeString:
    """One of our own sentences: words, and values in bold."""
    return format_html_join(
        "", "{}", ((_bold(part.text) if part.value else part.text,) for part in parts)
    )


def _bold(text: str) -> SafeString:
    return format_html("<b>{}</b>", text)

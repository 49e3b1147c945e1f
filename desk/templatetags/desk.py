"""Template tags of the desk: icons, clocks, fixed sentences and the heads of rows.

Text from agents goes through the tags of `inert`, never through these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString

from journal.clock import format_time, to_zone
from policies.models import Person
from reviews.effects import wording

from ..components.formatting import SelectOption
from ..components.states import StateLabel
from ..components.step_up_means import list_step_up_means
from ..queue.page import QueueRow, QueueRowHead

LONGEST_UNBROKEN = 24  # characters, for which a telephone has room
_BREAK = re.compile(r"(?<=[_/])(?=[^_/])")
register = template.Library()
register.simple_tag(list_step_up_means, name="step_up_means")
register.filter("short_hash", wording.format_short_hash)
register.filter("span", wording.format_duration)
register.filter("clock", format_time)


@register.filter
def breakable(name: str) -> SafeString:
    """A name of a program or an address, which may break after `_` and `/`."""
    *parts, last = _BREAK.split(name)
    head = format_html_join("", "{}<wbr>", ((part,) for part in parts))
    return format_html("{}{}", head, last)


@register.filter
def unbroken(name: str) -> SafeString:
    """An id or the name of a run: whole on one line, unless it is long."""
    if len(name) > LONGEST_UNBROKEN:
        return breakable(name)
    return format_html('<span class="nowrap">{}</span>', name)


@register.simple_tag
def to(name: str) -> str:
    """The URL of a page without arguments.

    Every page has a dozen of them, so each is looked up once per process.
    """
    return _reverse_url(name)


@cache
def _reverse_url(name: str) -> str:
    return reverse(name)


@register.simple_tag(takes_context=True)
def person(
    context: template.Context, named: Person | None, nobody: str = ""
) -> SafeString | str:
    """Somebody's name: a link for readers who may open the page of a person. `nobody`
    stands where there is no person."""
    if named is None:
        return nobody
    frame = context.get("desk")
    if frame is None or not frame.sees_people:
        return conditional_escape(str(named))
    url = reverse("reviews:person", args=[named.public_id])
    return format_html('<a href="{}">{}</a>', url, named)


@register.simple_tag
def icon(name: str) -> SafeString:
    """An icon of the sprite. It is always beside its word, so screen readers skip
    it."""
    return _render_icon(name)


@cache
def _render_icon(name: str) -> SafeString:
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
    """The date in the reader's time zone, as people write it: `20 November 2026`."""
    if value is None:
        return ""
    local = to_zone(value)
    return f"{local.day} {local:%B %Y}"


@register.filter
def at(value: datetime | None) -> SafeString | str:
    """The time of day in the reader's zone, as an element that also gives it in UTC."""
    return _render_time(value, format_time(value)) if value else ""


@register.filter
def moment(value: datetime | None) -> SafeString | str:
    """The time of day and the date as one element."""
    if value is None:
        return ""
    date = day(value).replace(" ", "\N{NO-BREAK SPACE}")
    return _render_time(value, f"{format_time(value)}, {date}")


@register.simple_tag
def timed(sentence: str, moment: datetime | None) -> SafeString | str:
    """One of Counterseal's own sentences, with the time of `moment` in it as an
    element."""
    time = format_time(moment) if moment else ""
    if not time or time not in sentence:
        return conditional_escape(sentence)
    before, _, after = sentence.rpartition(time)
    return format_html("{}{}{}", before, at(moment), after)


def _render_time(value: datetime, text: str) -> SafeString:
    utc = to_zone(value, UTC)
    if timezone.get_current_timezone_name() == "UTC":
        return format_html('<time datetime="{}">{}</time>', utc.isoformat(), text)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        utc.isoformat(),
        f"{utc:%H:%M:%S}",
        text,
    )


@register.simple_tag
def said(parts: Iterable[Any]) -> SafeString:
    """One of Counterseal's own sentences: words, and values in bold."""
    return format_html_join(
        "",
        "{}",
        ((_render_bold(part.text) if part.value else part.text,) for part in parts),
    )


def _render_bold(text: str) -> SafeString:
    return format_html("<b>{}</b>", text)


CACHED_HEADS = 5000


@register.simple_tag
def row_head(row: QueueRow) -> SafeString:
    """The cells that say what would happen: risk, warnings, effect, flags, amount."""
    return _render_row_head(row.head)


@lru_cache(CACHED_HEADS)
def _render_row_head(head: QueueRowHead) -> SafeString:
    return render_to_string("desk/components/_row_head.html", {"row": head})


@register.inclusion_tag("desk/components/_state.html")
def state(label: StateLabel) -> dict[str, StateLabel]:
    """The icon of a state, its word, and how long it still lasts."""
    return {"label": label}


@register.inclusion_tag("desk/components/_options.html")
def options(choices: Sequence[SelectOption]) -> dict[str, Sequence[SelectOption]]:
    """The options of a select element."""
    return {"options": choices}

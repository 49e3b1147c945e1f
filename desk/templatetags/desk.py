"""Template tags of the desk: icons, clocks, fixed sentences and the heads of rows.

Text from agents goes through the tags of `inert`, never through these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import conditional_escape, escape, format_html, format_html_join
from django.utils.safestring import SafeString

from journal.clock import format_time, to_zone
from policies.models import Person
from reviews.effects import wording
from reviews.effects.wording import WordingPart

from ..components.formatting import SelectOption
from ..components.log_lines import LogLine
from ..components.states import StateLabel
from ..components.step_up_means import list_step_up_means
from ..queue.page import QueueRow, QueueRowHead

LONGEST_UNBROKEN = 24  # characters, for which a telephone has room
_LINK = '<a href="{}">{}</a>'
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
    context: template.Context, named: Person | str | None, nobody: str = ""
) -> SafeString | str:
    """Somebody's name: a link for readers who may open the page of a person. A text
    stands for a person whose name is hidden or unknown, `nobody` for none."""
    if not named:
        return nobody
    frame = context.get("desk")
    if isinstance(named, str) or frame is None or not frame.sees_people:
        return conditional_escape(str(named))
    url = reverse("reviews:person", args=[named.public_id])
    return format_html(_LINK, url, named)


@register.simple_tag(takes_context=True)
def people(context: template.Context, named: Sequence[Person | str]) -> SafeString:
    """Several names, each like that of `person`: `Rita, Tom and 3 more`."""
    *names, last = [(person(context, somebody),) for somebody in named]
    head = format_html_join(", ", "{}", names)
    return format_html("{}{}{}", head, " and " if names else "", *last)


@register.simple_tag
def agent(slug: str) -> SafeString:
    """An agent's name with a link to its page, for a reader who may see one of its
    proposals, and so the agent."""
    try:
        url = reverse("agents:agent", args=[slug])
    except NoReverseMatch:  # no agent's name, but what an address says
        return escape(slug)
    return format_html(_LINK, url, slug)


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


@register.simple_tag(takes_context=True)
def timed(
    context: template.Context,
    sentence: str,
    moment: datetime | None,
    who: Person | str = "",
) -> SafeString | str:
    """One of Counterseal's own sentences, with the time of `moment` in it as an
    element, and the name of the person `who` like that of `person`."""
    if not isinstance(who, Person):
        return _mark_time(sentence, moment)
    head, name, tail = sentence.partition(str(who))
    named = person(context, who) if name else ""
    parts = (_mark_time(head, moment), named, _mark_time(tail, moment))
    return format_html("{}{}{}", *parts)


def _mark_time(sentence: str, moment: datetime | None) -> SafeString | str:
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
def said(parts: Iterable[WordingPart]) -> SafeString:
    """One of Counterseal's own sentences: words, values in bold, and names that lead to
    their pages."""
    return format_html_join("", "{}", ((_render_part(part),) for part in parts))


def _render_part(part: WordingPart) -> SafeString | str:
    text = format_html("<b>{}</b>", part.text) if part.value else part.text
    return format_html(_LINK, part.url, text) if part.url else text


@register.simple_tag
def said_in_list(
    line: LogLine, effect: SafeString | str = "", *, row: bool = False
) -> SafeString:
    """The sentence of a record in a list, and its effect: names lead to their own
    pages, all else to the record. A `row` is one stop of the keys J and K."""
    pieces = [(bool(part.url), said([part])) for part in line.wording]
    if effect:
        pieces.append((False, format_html(": {}", effect)))
    drawn, more = [], '<a class="effect" href="{}">{}</a>' if row else _LINK
    link = '<a class="effect" href="{}" data-row>{}</a>' if row else _LINK
    for is_name, run in groupby(pieces, key=itemgetter(0)):
        text = format_html_join("", "{}", ((piece,) for _, piece in run))
        if is_name:
            drawn.append(text)
            continue
        drawn.append(format_html(link, line.url, text))
        link = more
    return format_html_join("", "{}", ((piece,) for piece in drawn))


CACHED_HEADS = 5000


@register.simple_tag
def row_head(row: QueueRow) -> SafeString:
    """The cells that say what would happen: risk, warnings, effect, flags, amount."""
    return _render_row_head(row.head)


@lru_cache(CACHED_HEADS)
def _render_row_head(head: QueueRowHead) -> SafeString:
    return render_to_string("desk/components/_row_head.html", {"row": head})


@register.inclusion_tag("desk/components/_state.html", takes_context=True)
def state(context: template.Context, label: StateLabel) -> dict[str, Any]:
    """The icon of a state, its word, and how long it still lasts."""
    return {"label": label, "desk": context.get("desk")}


@register.inclusion_tag("desk/components/_options.html")
def options(choices: Sequence[SelectOption]) -> dict[str, Sequence[SelectOption]]:
    """The options of a select element."""
    return {"options": choices}

"""Lines of lists, drawn fast: fifty of them in a millisecond or two (speed.md G7).

What never changes about a line is drawn once by its template and kept; what moves with
the clock is put together here. Everything foreign goes through `inert`, as elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from django import template
from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from reviews.desk.components.states import State
from reviews.desk.queue.page import Head, Row
from reviews.effects.wording import span
from reviews.queries.selects import Option

from .desk import at, day, icon, pie, timed

register = template.Library()

KEPT = 5000
_EXPIRES = (
    '<span class="lead{0}">{1}<time datetime="{2}" data-until="{2}">{3} left</time>'
    '</span><p class="two"><span class="vh">expires at </span>{4}</p>'
)
_SETTLED = '<span class="lead">{}</span><p class="two">{}</p>'
_FROZEN = '<span class="lead">{}Frozen, {} left</span>'
_STANDS = '<span class="lead">{}<span>{}</span>{}</span>{}'
_OPTION = '<option value="{}">{}</option>'
_CHOSEN = '<option value="{}" selected>{}</option>'
_UNTIL = ' <span data-until="{}" data-words="{}">{}</span>'


@register.simple_tag
def row_head(row: Row) -> SafeString:
    """The cells that say what would happen: risk, effect, tool, agent, flags."""
    return _head(row.head)


@lru_cache(KEPT)
def _head(head: Head) -> SafeString:
    return render_to_string("reviews/_row_head.html", {"row": head})


@register.simple_tag
def row_when(row: Row) -> SafeString:
    """When it expires, with a clock; or when it was settled."""
    until = row.clock
    if until is None:
        return format_html(_SETTLED, at(row.at), day(row.at))
    if until.frozen:
        return format_html(_FROZEN, pie(until.quarters), span(until.left))
    return format_html(
        _EXPIRES,
        " lead-urgent" if until.urgent else "",
        pie(until.quarters),
        until.at.isoformat(),
        span(until.left),
        at(until.at),
    )


@register.simple_tag
def row_state(state: State | None) -> SafeString | str:
    """Where it stands: a sign, a word and a note; nothing of what simply waits."""
    if state is None:
        return ""
    sign = icon(state.icon) if state.quarters is None else pie(state.quarters)
    until: SafeString | str = ""
    if state.until is not None:
        words, left = state.until_words, state.until_said
        until = format_html(_UNTIL, state.until.isoformat(), words, left)
    said = timed(state.note, state.note_at)
    note = format_html('<p class="two">{}</p>', said) if said else ""
    return format_html(_STANDS, sign, timed(state.word, state.at), until, note)


@register.simple_tag
def options(choices: Sequence[Option]) -> SafeString:
    """The options of a select."""
    return _options(tuple(choices))


@lru_cache(200)
def _options(choices: tuple[Option, ...]) -> SafeString:
    return format_html_join("\n", "{}", ((_option(one),) for one in choices))


def _option(one: Option) -> SafeString:
    drawn = _CHOSEN if one.selected else _OPTION
    return format_html(drawn, one.value, one.label)

"""The queue: what is mine, what I can take, what waits for others, what is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from journal import clock
from policies.choices import Risk, Role
from policies.models import Person
from reviews.desk.components import badges, saved_views, visibility
from reviews.desk.components.saved_views import Saved
from reviews.queries.queue import choices as queue_choices
from reviews.queries.queue import figures as queue_figures
from reviews.queries.queue import gone
from reviews.queries.queue.figures import Figures, OwnDay
from reviews.queries.selects import Choice
from reviews.requests.versions import BANDS

from . import rows, search
from .filters import MOST_ROWS, PAGE, TABS, Filters
from .rows import Head, Row
from .search import Found, Reach

__all__ = [
    "Filters",
    "Head",
    "QueuePage",
    "Row",
    "gone",
    "newer",
    "ordered_ids",
    "page",
    "rows_of",
]

TOGETHER = ("open", "mine")  # tabs of what a person can decide, alone or in a batch
EMPTY = {
    "mine": "You hold nothing, and nothing was given to you.",
    "open": "Nothing waits for you.",
    "waiting": "Nothing waits for others.",
    "done": "Nothing was settled here in the last 7 days.",
}


@dataclass(frozen=True, slots=True)
class Tab:
    name: str
    label: str
    count: int
    url: str
    current: bool

    @property
    def shown(self) -> str:
        return badges.capped(self.count) or "0"


@dataclass(frozen=True, slots=True)
class QueuePage:
    filters: Filters
    tabs: list[Tab]
    choices: list[Choice]
    bands: list[list[Row]]
    saved: Saved
    time_label: str
    empty: str
    empty_note: str
    own_day: OwnDay | None
    caption: str
    fresh_url: str
    more_url: str
    figures: Figures
    supervises: bool
    polls: bool

    @property
    def order_said(self) -> str:
        return self.filters.order_said

    @property
    def unknown_count(self) -> int:
        return self.figures.unknown if self.polls else 0

    @property
    def overloaded(self) -> bool:
        return self.polls and self.figures.overloaded


def page(
    person: Person, filters: Filters, *, decidable: int, now: datetime
) -> QueuePage:
    """One page of the queue. `decidable` is the header's number.

    Seven queries however many rows there are, one more for effects never shown before
    and one more where there are no rows.
    """
    reach = Reach.of(person)
    found = search.find(reach, filters, now=now)
    settled = filters.tab == "done"
    lines = rows.of(
        found[: filters.show],
        person,
        now,
        settled=settled,
        together=filters.tab in TOGETHER,
        gathered=filters.gathers and reach.role is not None,
    )
    counted = queue_figures.count(reach, now)
    tabs = _tabs(reach, filters, counted, decidable)
    empty = not filters.narrow
    return QueuePage(
        filters=filters,
        tabs=tabs,
        choices=queue_choices.of(reach, filters, lines),
        bands=_banded(lines, filters),
        saved=saved_views.of(person, "queue", filters.query(), offers=filters.differs),
        time_label="Settled" if settled else "Expires",
        empty=EMPTY[filters.tab] if empty else "Nothing fits the filter.",
        empty_note=_with_others(tabs, filters),
        own_day=queue_figures.own_day(reach, now) if not lines and reach.role else None,
        caption=f"{TABS[filters.tab]} requests",
        fresh_url=f"{reverse('reviews:queue_fresh')}?{urlencode(_since(filters, now))}",
        more_url=_more(filters) if len(found) > filters.show else "",
        figures=counted,
        supervises=reach.role is Role.SUPERVISOR,
        polls=filters.tab == "open",
    )


def ordered_ids(person: Person, filters: Filters) -> list[str]:
    """What this person can decide, filtered and ordered as on the page."""
    wanted = replace(filters, tab="open", show=MOST_ROWS)
    return [one.id for one in search.find(Reach.of(person), wanted, now=clock.now())]


def rows_of(
    ids: Iterable[str], person: Person, now: datetime, *, base: str = rows.REQUESTS
) -> list[Row]:
    """Any requests as lines, in the order given, each linked below `base`. Who asks
    has checked what the person sees."""
    return rows.of([Found(one) for one in ids], person, now, base=base)


def newer(person: Person, since: datetime) -> int:
    """How many requests this person can decide were opened after that moment."""
    found = visibility.decidable(person).filter(opened_at__gt=since)
    return found.order_by()[: search.MOST_COUNTED].count()


def _since(filters: Filters, now: datetime) -> Mapping[str, str]:
    return {"since": now.isoformat(), "back": filters.url()}


def _more(filters: Filters) -> str:
    return filters.url(show=filters.show + PAGE)


def _tabs(
    reach: Reach, filters: Filters, counted: Figures, decidable: int
) -> list[Tab]:
    counts = {"open": counted.waiting, "done": counted.done}
    if reach.role is not None:
        counts |= {"mine": counted.mine, "open": decidable, "waiting": counted.waiting}
    return [
        Tab(name, label, counts[name], Filters(tab=name).url(), name == filters.tab)
        for name, label in TABS.items()
        if name in counts
    ]


def _banded(lines: list[Row], filters: Filters) -> list[list[Row]]:
    if filters.sort != "left" or filters.tab == "done":
        return [lines] if lines else []
    bands = groupby(lines, key=lambda one: BANDS[Risk(one.risk)])
    return [list(band) for _, band in bands]


def _with_others(tabs: Iterable[Tab], filters: Filters) -> str:
    others: Any = next((tab for tab in tabs if tab.name == "waiting"), None)
    if filters.tab != "open" or others is None or not others.count:
        return ""
    return (
        f"{others.shown} {'item is' if others.count == 1 else 'items are'} with others."
    )

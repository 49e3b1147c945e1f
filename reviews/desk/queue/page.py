"""The page model of the queue: tabs, rows, the desk's figures and fresh changes.

The figures say what each tab holds, whether more waits than the people at the desk can
decide, and what the person decided today. Each number is counted only as far as the
page prints it. Changes made elsewhere since the page was rendered are listed as
sentences for its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from django.db import connection
from django.urls import reverse

from journal import clock
from policies.choices import Risk, Role
from policies.models import Person
from reviews import permissions
from reviews.choices import SETTLED, RequestStatus
from reviews.desk.components import badges, saved_views, visibility
from reviews.desk.components.formatting import Choice
from reviews.desk.components.log_sentences import HIDDEN_NAME
from reviews.desk.components.saved_views import Saved
from reviews.models import ApprovalRequest, Decision
from reviews.requests.versions import BANDS

from . import rows as queue_rows
from . import search
from .filters import MOST_ROWS, PAGE, TABS, Filters
from .rows import Head, Row
from .search import MOST_COUNTED, Found, Reach

# Open requests for each person at the desk; more are too many (ux.md 4.1).
MOST_EACH = 25
LATELY = timedelta(minutes=30)
# Decisions that one person at the desk can make in half an hour, even if they made
# none in the last: a high risk takes about a minute (ux.md 6.2).
PACE_EACH = 25
_NEWEST = 300  # decisions from which the pace is computed

_TAB = "(SELECT count(*) FROM ({source}) AS r)"
# Present at the desk are people who decided lately or hold a request now.
_FIGURES = """
WITH lately AS (
  SELECT vote.reviewer_id AS who FROM
    (SELECT reviewer_id, at FROM reviews_decision
     ORDER BY id DESC LIMIT {newest}) AS vote
  WHERE vote.at > %(now)s - %(lately)s
), desk AS (
  SELECT greatest(count(DISTINCT who), 1) AS people,
         greatest((SELECT count(*) FROM lately),
                  {pace} * greatest(count(DISTINCT who), 1)) AS pace
  FROM (SELECT who FROM lately
        UNION SELECT holder_id FROM reviews_lease
        WHERE holder_id IS NOT NULL AND until > %(now)s) AS present
)
SELECT {mine}, {waiting}, {done}, {unknown}, desk.people, desk.pace,
  (SELECT count(*) FROM {open} AS r) AS open,
  (SELECT count(*) FROM {due} AS r) AS due
FROM desk
"""
_UNKNOWN = """(SELECT count(*) FROM
  (SELECT FROM reviews_execution AS x
   JOIN reviews_grant AS g ON g.id = x.grant_id
   JOIN reviews_revision AS v ON v.id = g.revision_id
   JOIN policies_tool AS t ON t.id = v.tool_id
   WHERE x.status = 'unknown' AND t.queue_id = ANY (%(mine)s::bigint[])
   LIMIT {most}) AS x)"""
# Count open requests, and those due soon, only as far as overload needs.
_ENOUGH = f"(SELECT people * {MOST_EACH} + 1 FROM desk)"  # noqa: S608 our numbers
_ENOUGH_DUE = f"(SELECT pace + {MOST_COUNTED} FROM desk)"  # noqa: S608 the same
_MEASURED = (("true", _ENOUGH), ("r.expires_at <= %(now)s + %(lately)s", _ENOUGH_DUE))
_OWN_DAY = """
SELECT count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY took_ms)
FROM reviews_decision WHERE reviewer_id = %s AND at >= date_trunc('day', %s, 'UTC')
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """The numbers of the tabs other than Open, and the desk's capacity against what
    waits."""

    mine: int
    waiting: int
    done: int
    unknown: int
    people: int
    pace: int
    open: int
    due: int

    @property
    def lapsing(self) -> int:
        """How many requests will expire within half an hour at the current pace."""
        return max(self.due - self.pace, 0)

    @property
    def overloaded(self) -> bool:
        """Whether more waits than the people at the desk can decide."""
        return self.open > self.people * MOST_EACH or self.lapsing > 0


@dataclass(frozen=True, slots=True)
class OwnDay:
    """How many requests this person decided today, and the median time in seconds."""

    decided: int
    seconds: int | None


def count(reach: Reach, now: datetime) -> Figures:
    """Count all figures in one statement."""
    elsewhere = "waiting" if reach.role else "open"  # readers see everything open
    tab = {
        name: _TAB.format(source=search.source(reach, Filters(tab=tab)))
        for name, tab in (("mine", "mine"), ("waiting", elsewhere), ("done", "done"))
    }
    settles = reach.role is Role.SUPERVISOR
    open_, due = (
        search.decidable(reach, where, most) if reach.role else "(SELECT WHERE false)"
        for where, most in _MEASURED
    )
    sql = _FIGURES.format(
        **tab,
        open=open_,
        due=due,
        unknown=_UNKNOWN.format(most=MOST_COUNTED) if settles else "0",
        newest=_NEWEST,
        pace=PACE_EACH,
    )
    given = search.given(reach, Filters(), now)
    with connection.cursor() as cursor:
        cursor.execute(sql, given | {"most": MOST_COUNTED, "lately": LATELY})
        numbers = cursor.fetchone()
    return Figures(*(min(n, MOST_COUNTED) for n in numbers[:4]), *numbers[4:])


def own_day(reach: Reach, now: datetime) -> OwnDay:
    """Load the person's own day; the page shows it when nothing waits."""
    with connection.cursor() as cursor:
        cursor.execute(_OWN_DAY, [reach.person.pk, now])
        decided, took = cursor.fetchone()
    return OwnDay(decided, None if took is None else max(round(took / 1000), 1))


MOST = 60  # rows; with more, reloading the page is better
WORDS = {
    RequestStatus.RECALLABLE: "Approved",
    RequestStatus.AUTHORIZED: "Approved",
    RequestStatus.REJECTED: "Rejected",
    RequestStatus.EXPIRED: "Expired",
    RequestStatus.WITHDRAWN: "Withdrawn",
    RequestStatus.SUPERSEDED: "Replaced",
}
BY_PEOPLE = {RequestStatus.AUTHORIZED, RequestStatus.REJECTED}


@dataclass(frozen=True, slots=True)
class Gone:
    """A request that no longer waits: `Approved by Tomás`."""

    id: str
    said: str


def since(person: Person, moment: datetime) -> list[Gone]:
    """List the requests of this person's queues that settled since `moment`, newest
    first.

    Two queries. A decider is named only when the request is settled, and never to the
    owner of the run.
    """
    found = ApprovalRequest.objects.filter(queue__in=permissions.queues_of(person))
    settled = found.filter(settled_at__gt=moment, status__in=SETTLED)
    held = found.filter(status=RequestStatus.RECALLABLE)
    rows = [*settled.order_by("-settled_at")[:MOST], *held[:MOST]][:MOST]
    names = _names(row.pk for row in rows if row.status in BY_PEOPLE)
    return [Gone(row.pk, _said(row, names, person)) for row in rows]


def _names(ids: Iterable[str]) -> dict[str, str]:
    """The person who gave the last verdict, by request."""
    votes = Decision.objects.filter(request__in=list(ids)).select_related("reviewer")
    return {vote.request_id: str(vote.reviewer) for vote in votes.order_by("at")}


def _said(row: ApprovalRequest, names: dict[str, str], person: Person) -> str:
    word = WORDS[RequestStatus(row.status)]
    if row.pk not in names:
        return word
    own = person.public_id in row.barred
    return f"{word} by {HIDDEN_NAME if own else names[row.pk]}"


__all__ = [
    "Filters",
    "Head",
    "QueuePage",
    "Row",
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
    """One tab with its number."""

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
    """Everything on the queue page."""

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
    """Build one page of the queue. `decidable` is the number in the header.

    Seven queries for any number of rows; one more for effects that this process has not
    described before, and one more when there are no rows.
    """
    reach = Reach.of(person)
    found = search.find(reach, filters, now=now)
    settled = filters.tab == "done"
    lines = queue_rows.of(
        found[: filters.show],
        person,
        now,
        settled=settled,
        together=filters.tab in TOGETHER,
        gathered=filters.gathers and reach.role is not None,
    )
    counted = count(reach, now)
    tabs = _tabs(reach, filters, counted, decidable)
    empty = not filters.narrow
    return QueuePage(
        filters=filters,
        tabs=tabs,
        choices=queue_rows.choices_of(reach, filters, lines),
        bands=_banded(lines, filters),
        saved=saved_views.of(person, "queue", filters.query(), offers=filters.differs),
        time_label="Settled" if settled else "Expires",
        empty=EMPTY[filters.tab] if empty else "Nothing fits the filter.",
        empty_note=_with_others(tabs, filters),
        own_day=own_day(reach, now) if not lines and reach.role else None,
        caption=f"{TABS[filters.tab]} requests",
        fresh_url=f"{reverse('reviews:queue_fresh')}?{urlencode(_since(filters, now))}",
        more_url=_more(filters) if len(found) > filters.show else "",
        figures=counted,
        supervises=reach.role is Role.SUPERVISOR,
        polls=filters.tab == "open",
    )


def ordered_ids(person: Person, filters: Filters) -> list[str]:
    """List the ids that this person can decide, filtered and ordered as on the page."""
    wanted = replace(filters, tab="open", show=MOST_ROWS)
    return [one.id for one in search.find(Reach.of(person), wanted, now=clock.now())]


def rows_of(
    ids: Iterable[str],
    person: Person,
    now: datetime,
    *,
    base: str = queue_rows.REQUESTS,
) -> list[Row]:
    """List any requests as rows in the given order, each linked below `base`.

    The caller must have checked that this person may see them.
    """
    return queue_rows.of([Found(one) for one in ids], person, now, base=base)


def newer(person: Person, since: datetime) -> int:
    """Count the requests opened after `since` that this person can decide."""
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

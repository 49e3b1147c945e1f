"""The page model of the queue: tabs, rows, the desk's figures and fresh changes.

The figures say what each tab holds, whether more waits than the people at the desk can
decide, and what the person decided today. Each number is counted only as far as the
page prints it. Changes made elsewhere since the page was rendered are listed as
sentences for its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from django.db import connection
from django.urls import reverse

from assurance import practice, second_reviews
from journal import clock
from policies import substitutes
from policies.choices import Risk, Role
from policies.models import Person, Substitution
from reviews import permissions
from reviews.choices import DECIDED, REQUEST_SPECS, SETTLED, RequestStatus
from reviews.models import ApprovalRequest, Decision
from reviews.requests.versions import RISK_BANDS
from stats.measures import NOT_UNDONE

from ..components import badges, saved_views, visibility
from ..components.formatting import FilterSelect
from ..components.log_sentences import HIDDEN_NAME
from ..components.saved_views import SavedViewList
from . import rows as queue_rows
from . import search
from .filters import MOST_ROWS, PAGE_SIZE, TABS, QueueFilters
from .rows import QueueRow, QueueRowHead
from .search import MOST_COUNTED, FoundRequest, QueueReach

# Open requests for each person at the desk; above it the page reports an overload.
MAX_OPEN_EACH = 25
RECENT_PERIOD = timedelta(minutes=30)
# Decisions that one person at the desk can make in half an hour, even if they made
# none in the last: a high risk takes about a minute.
PACE_EACH = 25
_NEWEST = 300  # decisions from which the pace is computed
_MOST_OWN = 5000  # of a person's week that are counted

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
        UNION SELECT holder_id FROM reviews_hold
        WHERE holder_id IS NOT NULL AND until > %(now)s) AS present
)
SELECT {mine}, {waiting}, {done}, {unknown}, desk.people, desk.pace,
  (SELECT count(*) FROM {open} AS r) AS open,
  (SELECT count(*) FROM {due} AS r) AS due, {away} AS away,
  (SELECT count(*) FROM reviews_approvalrequest AS r WHERE {offers}) AS offers
FROM desk
"""
_UNKNOWN = """(SELECT count(*) FROM
  (SELECT FROM reviews_execution AS x
   JOIN reviews_grant AS g ON g.id = x.grant_id
   JOIN reviews_revision AS v ON v.id = g.revision_id
   JOIN policies_tool AS t ON t.id = v.tool_id
   WHERE x.status = 'unknown' AND t.queue_id = ANY (%(mine)s::bigint[])
   LIMIT {most}) AS x)"""
# Count open requests, and those due soon, only as far as the tab and overload need.
_ENOUGH = f"(SELECT greatest(people * {MAX_OPEN_EACH} + 1, {MOST_COUNTED}) FROM desk)"  # noqa: S608 our numbers
_ENOUGH_DUE = f"(SELECT pace + {MOST_COUNTED} FROM desk)"  # noqa: S608 the same
_MEASURED = (("true", _ENOUGH), ("r.expires_at <= %(now)s + %(lately)s", _ENOUGH_DUE))
_OWN_WEEK = f"""
SELECT count(*) FILTER (WHERE at >= date_trunc('day', %s, 'UTC')), count(*),
  count(*) FILTER (WHERE verdict = 'modify'),
  count(*) FILTER (WHERE verdict = 'reject'), count(took_ms),
  percentile_cont(0.5) WITHIN GROUP (ORDER BY took_ms)
FROM (SELECT decision.at, decision.verdict, decision.took_ms
      FROM reviews_decision AS decision
      WHERE reviewer_id = %s AND at > %s - interval '7 days' AND {NOT_UNDONE}
      ORDER BY at DESC LIMIT {_MOST_OWN}) AS own
"""  # noqa: S608 constants


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """The numbers of the tabs, and the desk's capacity against what waits. `open` is
    the number of the Open tab: other people's claims count, as the list shows them."""

    own: int
    waiting: int
    done: int
    unknown: int
    people: int
    pace: int
    open: int
    due: int
    away: bool  # whether the person has not decided for a while (`practice.AWAY_SQL`)
    offers: int  # requests that colleagues offer to this person

    @property
    def lapsing(self) -> int:
        """How many requests will expire within half an hour at the current pace."""
        return max(self.due - self.pace, 0)

    @property
    def overloaded(self) -> bool:
        """Whether more waits than the people at the desk can decide."""
        return self.open > self.people * MAX_OPEN_EACH or self.lapsing > 0


@dataclass(frozen=True, slots=True)
class OwnFigures:
    """How many requests this person decided today and in seven days, and of the seven
    days what they changed and rejected, how many of them were timed, and the median of
    these in seconds."""

    today: int
    week: int
    changed: int
    rejected: int
    timed: int
    seconds: int | None


def count_queue(reach: QueueReach, now: datetime) -> QueueFigures:
    """Count all figures in one statement."""
    elsewhere = "waiting" if reach.role else "open"  # readers see everything open
    tab = {
        name: _TAB.format(source=search.build_tab_sql(reach, QueueFilters(tab=tab)))
        for name, tab in (("mine", "mine"), ("waiting", elsewhere), ("done", "done"))
    }
    settles = reach.role is Role.SUPERVISOR
    open_, due = (
        search.build_decidable_sql(reach, where, most)
        if reach.role
        else "(SELECT WHERE false)"
        for where, most in _MEASURED
    )
    sql = _FIGURES.format(
        **tab,
        open=open_,
        due=due,
        unknown=_UNKNOWN.format(most=MOST_COUNTED) if settles else "0",
        newest=_NEWEST,
        pace=PACE_EACH,
        away=practice.AWAY_SQL,
        offers=search.build_offered_condition(reach),
    )
    given = search.build_parameters(reach, QueueFilters(), now)
    with connection.cursor() as cursor:
        cursor.execute(sql, given | {"most": MOST_COUNTED, "lately": RECENT_PERIOD})
        numbers = cursor.fetchone()
    return QueueFigures(*(min(n, MOST_COUNTED) for n in numbers[:4]), *numbers[4:])


def load_own_figures(reach: QueueReach, now: datetime) -> OwnFigures:
    """Load the person's own figures without the approvals that were undone. Nobody else
    sees them here, and they are compared with nobody's."""
    with connection.cursor() as cursor:
        cursor.execute(_OWN_WEEK, [now, reach.person.pk, now])
        today, week, changed, rejected, timed, took = cursor.fetchone()
    seconds = None if took is None else max(round(took / 1000), 1)
    return OwnFigures(today, week, changed, rejected, timed, seconds)


MAX_GONE = 60  # rows; with more, reloading the page is better


@dataclass(frozen=True, slots=True)
class GoneRequest:
    """A request that no longer waits: `Approved by Tomás`."""

    id: str
    outcome: str


def list_gone_requests(person: Person, moment: datetime) -> list[GoneRequest]:
    """List the requests of this person's queues that settled since `moment`, newest
    first. Two queries. A decider is named only when the request is settled, and never
    to the owner of the run."""
    requests = ApprovalRequest.objects.filter(queue__in=permissions.queues_of(person))
    settled = requests.filter(settled_at__gt=moment, status__in=SETTLED)
    held = requests.filter(status=RequestStatus.RECALLABLE)
    rows = [*settled.order_by("-settled_at")[:MAX_GONE], *held[:MAX_GONE]][:MAX_GONE]
    names = _list_decider_names(row.pk for row in rows if row.status in DECIDED)
    return [GoneRequest(row.pk, _describe_outcome(row, names, person)) for row in rows]


def _list_decider_names(ids: Iterable[str]) -> dict[str, str]:
    votes = Decision.objects.filter(request__in=list(ids)).select_related("reviewer")
    return {vote.request_id: str(vote.reviewer) for vote in votes.order_by("at")}


def _describe_outcome(
    row: ApprovalRequest, names: dict[str, str], person: Person
) -> str:
    word = REQUEST_SPECS[row.status].label
    if row.pk not in names:
        return word
    own = person.public_id in row.barred
    return f"{word} by {HIDDEN_NAME if own else names[row.pk]}"


__all__ = [
    "QueueFilters",
    "QueuePage",
    "QueueRow",
    "QueueRowHead",
    "build_queue_page",
    "count_newer",
    "list_decidable_ids",
    "list_rows_by_id",
]

BATCHING_TABS = (
    "open",
    "mine",
)  # tabs of what a person can decide, alone or in a batch
EMPTY_SENTENCES = {
    "mine": "You have claimed nothing, and nothing is assigned or offered to you.",
    "open": "No request is pending for you.",
    "waiting": "Nothing is waiting on others.",
    "done": "Nothing was resolved here in the last 7 days.",
}


@dataclass(frozen=True, slots=True)
class QueueTab:
    """One tab with its number."""

    name: str
    label: str
    count: int
    url: str
    current: bool

    @property
    def shown(self) -> str:
        return badges.format_badge(self.count) or "0"


@dataclass(frozen=True, slots=True)
class QueuePage:
    """Everything on the queue page."""

    filters: QueueFilters
    tabs: list[QueueTab]
    choices: list[FilterSelect]
    bands: list[list[QueueRow]]
    saved: SavedViewList
    time_label: str
    empty: str
    empty_note: str
    own: OwnFigures | None
    caption: str
    fresh_url: str
    more_url: str
    figures: QueueFigures
    supervises: bool
    polls: bool
    second_reviews: int
    warm_up: bool  # whether a warm-up is offered
    substitutions: Sequence[Substitution]  # in which the person is away or stands in

    @property
    def order_said(self) -> str:
        return self.filters.order_said

    @property
    def unknown_count(self) -> int:
        return self.figures.unknown if self.polls else 0

    @property
    def offers(self) -> int:
        """How many requests are offered to the person; 0 where the list begins with
        them."""
        return 0 if self.filters.tab == "mine" else self.figures.offers

    @property
    def overloaded(self) -> bool:
        return self.polls and self.figures.overloaded


def build_queue_page(
    person: Person, filters: QueueFilters, *, now: datetime
) -> QueuePage:
    """Build one page of the queue.

    Nine queries for any number of rows; one more for effects that this process has not
    described before, one more when there are no rows, and one more for a person who has
    not decided for a while.
    """
    reach = QueueReach.of(person)
    requests = search.find_requests(reach, filters, now=now)
    settled = filters.tab == "done"
    lines = queue_rows.list_queue_rows(
        requests[: filters.show],
        person,
        now,
        settled=settled,
        together=filters.tab in BATCHING_TABS,
        gathered=filters.gathers and reach.role is not None,
    )
    counted = count_queue(reach, now)
    tabs = _build_tabs(reach, filters, counted)
    empty = not filters.narrow
    return QueuePage(
        filters=filters,
        tabs=tabs,
        choices=queue_rows.build_choices(reach, filters, lines),
        bands=_group_by_band(lines, filters),
        saved=saved_views.build_saved_view_list(
            person, "queue", filters.query(), offers=filters.differs
        ),
        time_label="Resolved" if settled else "Expires",
        empty=EMPTY_SENTENCES[filters.tab]
        if empty
        else "No request matches the filter.",
        empty_note=_describe_others(tabs, filters),
        own=load_own_figures(reach, now)
        if reach.role and (filters.tab == "mine" or not lines)
        else None,
        caption=f"{TABS[filters.tab]} requests",
        fresh_url=_build_fresh_url(filters, now),
        more_url=_build_more_url(filters) if len(requests) > filters.show else "",
        figures=counted,
        supervises=reach.role is Role.SUPERVISOR,
        polls=filters.tab == "open",
        second_reviews=_count_second_reviews(person, filters, now),
        warm_up=filters.tab == "open"
        and reach.role is not None
        and counted.away
        and practice.has_enough_sources(person, now),
        substitutions=substitutes.list_substitutions(person)
        if filters.tab == "open"
        else (),
    )


def _count_second_reviews(person: Person, filters: QueueFilters, now: datetime) -> int:
    if filters.tab != "open":
        return 0
    return second_reviews.select_open_reviews(person, now).count()


def list_decidable_ids(person: Person, filters: QueueFilters) -> list[str]:
    """List the ids that this person can decide, filtered and ordered as on the page."""
    wanted = replace(filters, tab="open", show=MOST_ROWS)
    return [
        request.id
        for request in search.find_requests(
            QueueReach.of(person), wanted, now=clock.now()
        )
    ]


def list_rows_by_id(
    ids: Iterable[str],
    person: Person,
    now: datetime,
    *,
    page: str = queue_rows.REQUEST_PAGE,
) -> list[QueueRow]:
    """List any requests as rows in the given order, each linked to its `page`.

    The caller must have checked that this person may see them.
    """
    return queue_rows.list_queue_rows(
        [FoundRequest(pk) for pk in ids], person, now, page=page
    )


def count_newer(person: Person, since: datetime) -> int:
    """Count the requests opened after `since` that this person can decide."""
    newer = visibility.select_decidable(person).filter(opened_at__gt=since)
    return newer.order_by()[: search.MOST_COUNTED].count()


def count_offers(person: Person, now: datetime) -> int:
    """Count the requests that colleagues offer to this person."""
    reach = QueueReach.of(person)
    condition = search.build_offered_condition(reach)
    given = search.build_parameters(reach, QueueFilters(), now)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*) FROM reviews_approvalrequest AS r WHERE {condition}",  # noqa: S608 the parts are constants
            given,
        )
        return int(cursor.fetchone()[0])


def _build_fresh_url(filters: QueueFilters, now: datetime) -> str:
    query = urlencode({"since": now.isoformat(), "back": filters.url()})
    return f"{reverse('reviews:queue_fresh')}?{query}"


def _build_more_url(filters: QueueFilters) -> str:
    return filters.url(show=filters.show + PAGE_SIZE)


def _build_tabs(
    reach: QueueReach, filters: QueueFilters, counted: QueueFigures
) -> list[QueueTab]:
    counts = {"open": counted.waiting, "done": counted.done}
    if reach.role is not None:
        counts |= {
            "mine": counted.own,
            "open": min(counted.open, MOST_COUNTED),
            "waiting": counted.waiting,
        }
    return [
        QueueTab(
            name, label, counts[name], QueueFilters(tab=name).url(), name == filters.tab
        )
        for name, label in TABS.items()
        if name in counts
    ]


def _group_by_band(
    lines: list[QueueRow], filters: QueueFilters
) -> list[list[QueueRow]]:
    if filters.sort != "left" or filters.tab == "done":
        return [lines] if lines else []
    first = filters.tab == "mine"  # what is offered is listed before the bands
    bands = groupby(
        lines, key=lambda row: (first and row.offered, RISK_BANDS[Risk(row.risk)])
    )
    return [list(band) for _, band in bands]


def _describe_others(tabs: Iterable[QueueTab], filters: QueueFilters) -> str:
    others: Any = next((tab for tab in tabs if tab.name == "waiting"), None)
    if filters.tab != "open" or others is None or not others.count:
        return ""
    return (
        f"{others.shown} {'request is' if others.count == 1 else 'requests are'} "
        "waiting on others."
    )

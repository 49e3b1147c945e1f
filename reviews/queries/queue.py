"""The queue: what I can decide, what waits for others, what is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from django.db.models import (
    Case,
    Count,
    F,
    IntegerField,
    Prefetch,
    Q,
    QuerySet,
    Value,
    When,
)
from django.urls import reverse

from policies.choices import Risk
from policies.models import Person
from reviews import permissions
from reviews.choices import OPEN, SETTLED, RequestStatus, Verdict
from reviews.models import ApprovalRequest, Decision
from reviews.permissions import Permission
from reviews.presenters.shapes import Part

from . import clocks, showing, states, unknown, visible
from .clocks import Clock
from .states import State, Tally

PAGE = 50
MOST_ROWS = 200
DONE_FOR = timedelta(days=7)
TABS = {"open": "Open", "waiting": "Waiting", "done": "Done"}
SORTS = {"left": "time left", "newest": "newest", "oldest": "oldest"}
BANDS = {Risk.CRITICAL: 0, Risk.HIGH: 1, Risk.MEDIUM: 2, Risk.LOW: 2}
PRIORITIES = {"critical": 0, "normal": 1, "low": 2}
ORDER = {
    "left": "Least time left first, within Critical, High, then the rest.",
    "newest": "Newest first.",
    "oldest": "Oldest first.",
}
DONE_SAID = "Settled in the last 7 days, newest first."
EMPTY = {
    "open": "Nothing waits for you.",
    "waiting": "Nothing waits for others.",
    "done": "Nothing was settled here in the last 7 days.",
}
SAID = {
    Verdict.APPROVE: "You approved",
    Verdict.REJECT: "You rejected",
    Verdict.MODIFY: "You modified",
    Verdict.ESCALATE: "You escalated",
}


@dataclass(frozen=True, slots=True)
class Filters:
    """The queue's state, all of it in the address."""

    tab: str = "open"
    risk: str = ""
    tool: str = ""
    agent: str = ""
    q: str = ""
    sort: str = "left"
    show: int = PAGE

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Filters:
        """From the address. What does not fit is ignored, never an error page."""
        allowed = {"tab": TABS, "risk": [r.value for r in Risk], "sort": SORTS}
        said = {
            name: query[name].strip()[:128]
            for name in ("tab", "risk", "tool", "agent", "q", "sort")
            if query.get(name)
        }
        fits = {n: v for n, v in said.items() if n not in allowed or v in allowed[n]}
        show = query.get("show", "")
        most = int(show) if show.isdecimal() and len(show) < 5 else PAGE
        return cls(**fits, show=min(max(most, PAGE), MOST_ROWS))

    def url(self, **changes: Any) -> str:
        """The queue with these filters; what is as usual is left out."""
        values = {name: getattr(self, name) for name in self.__slots__} | changes
        usual = Filters()
        said = {n: v for n, v in values.items() if v != getattr(usual, n)}
        return reverse("reviews:queue") + (f"?{urlencode(said)}" if said else "")


@dataclass(frozen=True, slots=True)
class Option:
    value: str
    label: str
    selected: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """One filter as a select."""

    name: str
    label: str
    options: list[Option]


@dataclass(frozen=True, slots=True)
class Tab:
    name: str
    label: str
    count: int
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One request as a line of a list."""

    id: str
    url: str
    risk: str
    tier: str
    effect: tuple[Part, ...]
    tool: str
    agent: str
    flags: list[str]
    at: datetime
    clock: Clock | None
    state: State | None
    gone: bool


@dataclass(frozen=True, slots=True)
class QueuePage:
    filters: Filters
    tabs: list[Tab]
    choices: list[Choice]
    bands: list[list[Row]]
    order_said: str
    time_label: str
    empty: str
    empty_note: str
    caption: str
    fresh_url: str
    more_url: str
    unknown_count: int
    polls: bool = False


def page(
    person: Person, filters: Filters, *, decidable: int, now: datetime
) -> QueuePage:
    """One page of the queue. `decidable` is the header's number."""
    base = _tab(person, filters.tab, now)
    found = _narrowed(base, filters)
    is_open = filters.tab == "open"
    ordered = _rows(found) if is_open else loaded(found, person)
    ordered = ordered.order_by(*_order(filters))
    rows = list(ordered[: filters.show + 1])
    more = len(rows) > filters.show
    tabs = _tabs(person, filters, decidable, now)
    return QueuePage(
        filters=filters,
        tabs=tabs,
        choices=_choices(base, filters),
        bands=_banded(rows[: filters.show], filters, now),
        order_said=DONE_SAID if filters.tab == "done" else ORDER[filters.sort],
        time_label="Settled" if filters.tab == "done" else "Expires",
        empty=EMPTY[filters.tab] if base_is_empty(tabs) else "Nothing fits the filter.",
        empty_note=_with_others(tabs, filters),
        caption=f"{TABS[filters.tab]} requests",
        fresh_url=f"{reverse('reviews:queue_fresh')}?{urlencode(_since(filters, now))}",
        more_url=filters.url(show=filters.show + PAGE) if more else "",
        unknown_count=unknown.settleable(person).count() if is_open else 0,
        polls=is_open,
    )


def ordered_ids(person: Person, filters: Filters) -> list[str]:
    """What this person can decide, filtered and ordered as on the page."""
    found = _narrowed(visible.decidable(person), filters)
    ordered = found.order_by(*_order(replace(filters, tab="open")))
    return list(ordered.values_list("pk", flat=True)[:MOST_ROWS])


def base_is_empty(tabs: Iterable[Tab]) -> bool:
    """Whether the tab shown holds nothing at all, whatever the filter."""
    return not any(tab.count for tab in tabs if tab.current)


def newer(person: Person, since: datetime) -> int:
    """How many requests this person can decide were opened after that moment."""
    return visible.decidable(person).filter(opened_at__gt=since).count()


def _since(filters: Filters, now: datetime) -> Mapping[str, str]:
    return {"since": now.isoformat(), "back": filters.url()}


def _tab(person: Person, tab: str, now: datetime) -> QuerySet[ApprovalRequest]:
    if tab == "done":
        return visible.requests(person).filter(_done(person, now))
    if not _decides(person):
        return visible.requests(person).filter(_still_open(now))
    if tab == "open":
        return visible.decidable(person)
    mine = visible.decidable(person).values("pk")
    return visible.requests(person).filter(_still_open(now)).exclude(pk__in=mine)


def _decides(person: Person) -> bool:
    return permissions.deciding_role(person) is not None


def _still_open(now: datetime) -> Q:
    return Q(status=RequestStatus.RECALLABLE) | Q(
        status=RequestStatus.PENDING, expires_at__gt=now
    )


def _settled(now: datetime) -> Q:
    overdue = Q(status=RequestStatus.PENDING, expires_at__lte=now)
    return Q(status__in=SETTLED, settled_at__gt=now - DONE_FOR) | overdue


def _done(person: Person, now: datetime) -> Q:
    """What I decided, and what expired in my queues: silence is everyone's."""
    if permissions.allowed(person, Permission.SEE_ALL) and not _decides(person):
        return _settled(now)
    decided = Decision.objects.filter(reviewer=person).values("request")
    lapsed = Q(status__in=[RequestStatus.EXPIRED, RequestStatus.PENDING])
    return _settled(now) & (Q(pk__in=decided) | lapsed)


def _tabs(person: Person, filters: Filters, decidable: int, now: datetime) -> list[Tab]:
    found = visible.requests(person).aggregate(
        still_open=Count("pk", filter=_still_open(now)),
        done=Count("pk", filter=_done(person, now)),
    )
    counts = {"open": found["still_open"], "done": found["done"]}
    if _decides(person):
        waiting = max(found["still_open"] - decidable, 0)
        counts |= {"open": decidable, "waiting": waiting}
    return [
        Tab(name, label, counts[name], Filters(tab=name).url(), name == filters.tab)
        for name, label in TABS.items()
        if name in counts
    ]


def _narrowed(
    found: QuerySet[ApprovalRequest], filters: Filters
) -> QuerySet[ApprovalRequest]:
    if filters.risk:
        found = found.filter(risk=filters.risk)
    if filters.tool:
        found = found.filter(proposal__tool_name=filters.tool)
    if filters.agent:
        found = found.filter(proposal__agent=filters.agent)
    if filters.q:
        found = found.filter(
            Q(pk__iexact=filters.q)
            | Q(proposal__pk__iexact=filters.q)
            | Q(proposal__thread__icontains=filters.q)
            | Q(proposal__tool_name__icontains=filters.q)
        )
    return found


def _rows(found: QuerySet[ApprovalRequest]) -> QuerySet[ApprovalRequest]:
    """With what every row shows, in two queries however many rows there are."""
    sealed = Prefetch("versions", visible.sealed_now(), to_attr="sealed_now")
    found = found.select_related("proposal").prefetch_related(sealed)
    return found.annotate(given=visible.given())


def loaded(
    found: QuerySet[ApprovalRequest], person: Person
) -> QuerySet[ApprovalRequest]:
    """The same with the person's own votes and what came of it, in two more."""
    own = Decision.objects.filter(reviewer=person).order_by("at")
    votes = Prefetch("decisions", own, to_attr="own_decisions")
    ran = Prefetch("proposal__executions", to_attr="ran")
    return _rows(found).prefetch_related(votes, ran)


def _order(filters: Filters) -> list[Any]:
    if filters.tab == "done":
        return [F("settled_at").desc(nulls_first=True), "pk"]
    if filters.sort != "left":
        return ["-opened_at" if filters.sort == "newest" else "opened_at", "pk"]
    return [
        _ranked("risk", BANDS),
        _ranked("proposal__priority", PRIORITIES),
        "expires_at",
        "pk",
    ]


def _ranked(field: str, ranks: Mapping[Any, int]) -> Case:
    whens = [When(**{field: name}, then=Value(rank)) for name, rank in ranks.items()]
    return Case(*whens, default=Value(9), output_field=IntegerField())


def _banded(
    rows: list[ApprovalRequest], filters: Filters, now: datetime
) -> list[list[Row]]:
    if filters.sort != "left" or filters.tab == "done":
        return [[row(one, now) for one in rows]] if rows else []
    bands = groupby(rows, key=lambda one: BANDS[Risk(one.risk)])
    return [[row(one, now) for one in band] for _, band in bands]


def row(request: ApprovalRequest, now: datetime) -> Row:
    """One line of a list, from a request as `_rows` or `loaded` loads it."""
    sealed = request.sealed_now[0]  # type: ignore[attr-defined]
    tally = Tally(
        given=request.given,  # type: ignore[attr-defined]
        required=sum(step["required"] for step in sealed.steps),
    )
    execution = next(iter(getattr(request.proposal, "ran", [])), None)
    revision = sealed.revision
    revision.proposal = request.proposal
    shown = showing.brief(revision)
    state = states.of_request(request, execution, tally, cause=sealed.cause, now=now)
    waiting = request.status == RequestStatus.PENDING and request.expires_at > now
    return Row(
        id=request.pk,
        url=reverse("reviews:request_detail", args=[request.pk]),
        risk=request.risk,
        tier=request.tier,
        effect=shown.effect,
        tool=request.proposal.tool_name,
        agent=request.proposal.agent,
        flags=_flags(request, sealed.requires_reason, shown),
        at=request.settled_at or request.expires_at,
        clock=_clock(request, now) if waiting else None,
        state=_noted(state, request) if state.key != "waiting" or tally.given else None,
        gone=request.status not in OPEN or not waiting,
    )


def _clock(request: ApprovalRequest, now: datetime) -> Clock:
    return clocks.until(request.expires_at, since=request.opened_at, now=now)


def _flags(request: ApprovalRequest, reason: bool, shown: showing.Brief) -> list[str]:
    flags = list(shown.flags)
    if reason and request.status in OPEN:
        flags.append("Reason required")
    if request.proposal.priority == "critical":
        flags.append("Urgent, says the agent")
    return flags


def _noted(state: State, request: ApprovalRequest) -> State:
    own = getattr(request, "own_decisions", [])
    if not own:
        return state
    return replace(state, note=SAID[Verdict(own[-1].verdict)])


def _choices(base: QuerySet[ApprovalRequest], filters: Filters) -> list[Choice]:
    pairs = base.values_list("proposal__tool_name", "proposal__agent").distinct()
    found = list(pairs.order_by()[:500])
    tools = sorted({tool for tool, _ in found} | ({filters.tool} - {""}))
    agents = sorted({agent for _, agent in found} | ({filters.agent} - {""}))
    lists = [
        ("risk", "Risk", {"": "any", **{r.value: r.value.title() for r in Risk}}),
        ("tool", "Tool", {"": "any", **{t: t for t in tools}}),
        ("agent", "Agent", {"": "any", **{a: a for a in agents}}),
        *([] if filters.tab == "done" else [("sort", "Sort", SORTS)]),
    ]
    return [
        Choice(
            name,
            label,
            [Option(v, said, v == getattr(filters, name)) for v, said in list_.items()],
        )
        for name, label, list_ in lists
    ]


def _with_others(tabs: list[Tab], filters: Filters) -> str:
    others = next((tab.count for tab in tabs if tab.name == "waiting"), 0)
    if filters.tab != "open" or not others:
        return ""
    return f"{others} {'item is' if others == 1 else 'items are'} with others."

"""Requests as rows of a list, and the filter options of the queue.

Any number of rows takes two queries, and none for an effect that this process has
described before. The options come from indexes and never from a scan of all rows: the
tools of the queues, and the agents one index step each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import connection
from django.db.models import F, OuterRef, Prefetch, Q, QuerySet, Subquery, Value
from django.db.models.functions import Concat
from django.urls import reverse

from journal.clock import format_time
from journal.prepared_queries import Parameter, PreparedQuery
from notifications.channels import reach
from policies.choices import Risk
from policies.models import Person
from policies.money import Money, format_money
from reviews.choices import (
    OPEN,
    SCOPE_NOUNS,
    VERDICT_SPECS,
    RequestStatus,
    Scope,
    Verdict,
)
from reviews.effects import describe
from reviews.effects.wording import format_required_people
from reviews.governance import readings
from reviews.models import ApprovalRequest, Decision, RequestVersion, Stop
from reviews.presenters.shapes import SentencePart, TextPart
from reviews.stops import incidents

from ..batches import links, lists
from ..batches.links import BatchLink
from ..batches.lists import BatchListItem
from ..components import endings, formatting, holding, states, visibility
from ..components.formatting import DeadlineClock, FilterSelect, build_filter_select
from ..components.holding import HoldStatus
from ..components.states import ApprovalTally, StateLabel
from .filters import SORTS, QueueFilters
from .search import MOST_COUNTED, FoundRequest, QueueReach

REQUEST_PAGE = "reviews:request_detail"
URGENT_DIGIT = 0  # last digit of the rank when the agent claimed critical urgency


@dataclass(frozen=True, slots=True)
class QueueRowHead:
    """The part of a row that stays the same from one rendering to the next. It leads to
    the request's `page`; a batch's row has none and leads to the batch."""

    id: str
    page: str
    risk: str
    asked: str  # `1 reviewer and 2 supervisors`
    warnings: tuple[str, ...]  # what its page warns of on top
    effect: tuple[SentencePart, ...]
    amount: str
    tool: str
    agent: str
    flags: tuple[str, ...]
    repeats: str = ""
    repeats_url: str = ""
    batch: str = ""  # how many can be decided together with it
    batch_url: str = ""
    peeks: bool = True  # whether it offers a preview

    @property
    def url(self) -> str:
        return reverse(self.page, args=[self.id]) if self.page else self.batch_url


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One request as a row of a list."""

    head: QueueRowHead
    at: datetime
    opened: datetime
    age: timedelta
    clock: DeadlineClock | None
    state: StateLabel | None
    gone: bool
    offered: bool = False  # its holder offers it to this person

    @property
    def id(self) -> str:
        return self.head.id

    @property
    def risk(self) -> str:
        return self.head.risk

    @property
    def tool(self) -> str:
        return self.head.tool

    @property
    def agent(self) -> str:
        return self.head.agent


def list_queue_rows(
    requests: Sequence[FoundRequest],
    person: Person,
    now: datetime,
    *,
    settled: bool = False,
    page: str = REQUEST_PAGE,
    together: bool = False,
    gathered: bool = False,
) -> list[QueueRow]:
    """List the rows of the requests found, in order, each linked to its `page`.

    `settled` adds the outcome. `together` adds the batch that each waits in, with one
    more query; with `gathered`, one row stands for the whole batch, with three more.
    """
    sealed = load_versions(
        [request.id for request in requests], person, settled=settled
    )
    within = links.list_batch_links(sealed.keys()) if together and sealed else {}
    briefs = load_briefs(sealed.values())
    notes = _load_own_notes(sealed.values())
    whole = {link.id for link in within.values()} if gathered else set()
    batches = lists.load_batch_items(whole, now) if whole else {}

    def build_whole(request: FoundRequest) -> QueueRow:
        row = build_row(
            sealed[request.id],
            briefs,
            person,
            now,
            listed=request,
            page=page,
            own_note=notes.get(request.id, ""),
        )
        return _mark_batch(row, within.get(request.id), batches)

    return [
        describe.present_or_report(
            request.id,
            partial(build_whole, request),
            partial(_build_unreadable_row, sealed[request.id].request, now, page),
        )
        for request in requests
        if request.id in sealed
    ]


def _build_unreadable_row(
    request: ApprovalRequest, now: datetime, page: str
) -> QueueRow:
    head = QueueRowHead(
        id=request.pk,
        page=page,
        risk=request.risk,
        asked="",
        warnings=(describe.CANNOT_BE_READ,),
        effect=(TextPart("This request cannot be read"),),
        amount="",
        tool=request.tool_name,
        agent=request.agent,
        flags=(),
        peeks=False,
    )
    return QueueRow(
        head=head,
        at=request.expires_at,
        opened=request.opened_at,
        age=now - request.opened_at,
        clock=None,
        state=None,
        gone=request.status != RequestStatus.PENDING,
    )


def _mark_batch(
    row: QueueRow,
    within: BatchLink | None,
    batches: Mapping[str, BatchListItem],
) -> QueueRow:
    """Add the batch that the request can be decided in, or turn the row into that
    batch's row."""
    if within is None:
        return row
    batch = batches.get(within.id)
    if batch is None:
        words = f"in a batch of {within.count}"
        head = replace(row.head, batch=words, batch_url=within.url)
        return replace(row, head=head)
    head = replace(
        row.head,
        warnings=batch.warnings,
        effect=batch.title,
        amount=batch.amount,
        page="",
        batch=f"batch of {within.count}, earliest deadline shown",
        batch_url=within.url,
        repeats="",
        peeks=False,
    )
    return replace(row, head=head, state=_build_batch_state(row.state, batch.ending))


def _build_batch_state(state: StateLabel | None, words: str) -> StateLabel | None:
    """What a batch's row says of its requests, in place of what one of them says."""
    if state is None or state.word == states.APPROVAL_UNDONE:
        return StateLabel("waiting", words, icon="back") if words else None
    return replace(state, note=words) if words else state


def load_versions(
    ids: Iterable[str], person: Person, *, settled: bool = False
) -> dict[str, RequestVersion]:
    """Load the current versions by request, with what a row shows."""
    versions: Iterable[RequestVersion] = (
        _with_outcome(
            _annotate_row(RequestVersion.objects.filter(request__in=list(ids))), person
        )
        if settled
        else _VERSIONS.fetch_all(requests=list(ids))
    )
    return {version.request_id: version for version in versions}


def _annotate_row(versions: QuerySet[RequestVersion]) -> QuerySet[RequestVersion]:
    return (
        versions.filter(number=F("request__version"))
        .select_related(
            "request__hold__holder",
            "request__hold__offered_to",
            "request__hold__declined_by",
            "request__assignee",
        )
        .defer("rules", "seal")
        .annotate(
            given=visibility.build_approval_count(request="request", version="number"),
            switched_off=_build_switch_subquery(),
            refusal=reach.build_refusal_subquery(),
            told=reach.build_sent_condition(),
            newest_reading=readings.build_newest_subquery(),
        )
    )


_VERSIONS = PreparedQuery(
    lambda: _annotate_row(
        RequestVersion.objects.filter(request__any=Parameter("requests"))
    )
)


def _build_switch_subquery() -> Subquery:
    """The strictest switch over a request's run, agent or tool: `agent paused`."""
    run = Concat(
        OuterRef("request__agent"), Value("/"), OuterRef("request__proposal__thread")
    )
    over = (
        Q(scope=Scope.AGENT, key=OuterRef("request__agent"))
        | Q(scope=Scope.TOOL, key=OuterRef("request__tool_name"))
        | Q(scope=Scope.THREAD, key=run)
        | Q(scope=Scope.EVERYTHING)
    )
    switches = Stop.objects.filter(over, lifted_at__isnull=True).order_by("-mode", "pk")
    return Subquery(switches.values(text=Concat("scope", Value(" "), "mode"))[:1])


def load_briefs(sealed: Iterable[RequestVersion]) -> dict[int, describe.EffectBrief]:
    """Load the effects of these versions, by revision, as the newest reading of the
    state shows them."""
    versions = list(sealed)
    return describe.load_briefs_by_id(
        {version.revision_id: version.request.action_hash for version in versions},
        {version.revision_id: version.newest_reading for version in versions},  # type: ignore[attr-defined]
    )


def _with_outcome(
    versions: QuerySet[RequestVersion], person: Person
) -> QuerySet[RequestVersion]:
    own = Decision.objects.filter(reviewer=person).select_related("reviewer")
    given = Prefetch("request__decisions", own.order_by("at"), to_attr="own")
    ran = Prefetch("request__proposal__executions", to_attr="ran")
    return versions.select_related("request__proposal").prefetch_related(given, ran)


def _load_own_notes(sealed: Iterable[RequestVersion]) -> dict[str, str]:
    """What the person decided on each request last, and what later ended that: `You
    approved, undone after 4 s`."""
    newest: list[Decision] = [
        own[-1] for version in sealed if (own := getattr(version.request, "own", None))
    ]
    ends = endings.list_decision_endings(newest)
    notes = {}
    for decision in newest:
        ended = ends.get(decision.pk)
        after = f", {ended.describe(decision.at)}" if ended else ""
        notes[decision.request_id] = (
            f"You {VERDICT_SPECS[Verdict(decision.verdict)].past}{after}"
        )
    return notes


def build_row(
    sealed: RequestVersion,
    briefs: Mapping[int, describe.EffectBrief],
    person: Person,
    now: datetime,
    *,
    listed: FoundRequest,
    page: str = REQUEST_PAGE,
    own_note: str = "",
) -> QueueRow:
    """Build one row from a version that `load_versions` loaded. `own_note` is what the
    person decided on it."""
    request = sealed.request
    shown = briefs[sealed.revision_id]
    pending = request.status == RequestStatus.PENDING
    waiting = pending and incidents.has_time_left(request, now)
    head = QueueRowHead(
        id=request.pk,
        page=page,
        risk=request.risk,
        asked=format_required_people(sealed.steps),
        warnings=shown.warnings,
        effect=shown.effect,
        amount=_format_amount(request),
        tool=request.tool_name,
        agent=request.agent,
        flags=_list_flags(sealed, shown, now),
        **_describe_repeats(listed, request),
    )
    held = holding.build_hold_status(person, request, now)
    return QueueRow(
        head=head,
        at=request.settled_at or request.expires_at,
        opened=request.opened_at,
        age=now - request.opened_at,
        clock=formatting.build_request_clock(request, now) if waiting else None,
        state=_build_state(sealed, person, held, own_note, now),
        gone=not waiting,
        offered=waiting and held.offered,
    )


def _format_amount(request: ApprovalRequest) -> str:
    if request.amount_minor is None or not request.currency:
        return ""
    return format_money(Money(request.amount_minor, request.currency))


def _list_flags(
    sealed: RequestVersion, shown: describe.EffectBrief, now: datetime
) -> tuple[str, ...]:
    request = sealed.request
    flags = ["Irreversible"] if shown.irreversible else []
    if request.status == RequestStatus.PENDING:
        if sealed.refusal:  # type: ignore[attr-defined]
            flags.insert(0, reach.UNREACHED)
        elif sealed.told and reach.is_unread(request, now):  # type: ignore[attr-defined]
            flags.insert(0, reach.UNREAD)
    if request.status in OPEN and sealed.switched_off:  # type: ignore[attr-defined]
        scope, mode = sealed.switched_off.split()  # type: ignore[attr-defined]
        flags.insert(0, f"{SCOPE_NOUNS[Scope(scope)]} {mode}")
    if request.joined:
        flags.append(formatting.format_times_asked(request.joined))
    if sealed.requires_reason and request.status in OPEN:
        flags.append("Reason required")
    if request.rank % 10 == URGENT_DIGIT:
        flags.append("Urgent (agent says)")
    return tuple(flags)


def _build_state(
    sealed: RequestVersion,
    person: Person,
    held: HoldStatus,
    own_note: str,
    now: datetime,
) -> StateLabel | None:
    """Who holds the request or where it stands; None if it simply waits."""
    request = sealed.request
    given: int = sealed.given  # type: ignore[attr-defined]
    required = sum(step["required"] for step in sealed.steps)
    state = states.build_request_state(
        request,
        _find_execution(request),
        ApprovalTally(given, required),
        cause=sealed.cause,
        now=now,
        held=held,
    )
    if own_note:
        return replace(state, note=own_note)
    if request.assignee is not None and request.status == RequestStatus.PENDING:
        return _add_assignee(request.assignee, person, state)
    return None if state.word == states.PENDING_WORD else state


def _add_assignee(assignee: Person, person: Person, state: StateLabel) -> StateLabel:
    words = "Assigned to you" if assignee == person else f"Assigned to {assignee}"
    if state.word == states.PENDING_WORD:
        return replace(state, word=words)
    return replace(state, note=" · ".join(part for part in (state.note, words) if part))


def _find_execution(request: ApprovalRequest) -> Any:
    if request.status != RequestStatus.AUTHORIZED:
        return None
    return next(iter(getattr(request.proposal, "ran", [])), None)


def _describe_repeats(listed: FoundRequest, request: ApprovalRequest) -> dict[str, Any]:
    if listed.repeats < 2 or listed.since is None:
        return {}
    many = (
        f"{listed.repeats}+" if listed.repeats >= MOST_COUNTED else str(listed.repeats)
    )
    return {
        "repeats": f"\N{MULTIPLICATION SIGN}{many} since {format_time(listed.since)}",
        "repeats_url": f"{reverse('reviews:queue')}?same={request.repeat_key}",
    }


MOST_AGENTS = 100
# A loose index scan over the agents that wait in the person's queues, and the tools
# of these queues.
_NAMES_SQL = """
WITH RECURSIVE found (agent) AS (
  (SELECT r.agent FROM reviews_approvalrequest AS r
   WHERE r.status = 'pending' AND {read} ORDER BY r.agent LIMIT 1)
  UNION ALL
  SELECT (SELECT r.agent FROM reviews_approvalrequest AS r
          WHERE r.status = 'pending' AND r.agent > found.agent AND {read}
          ORDER BY r.agent LIMIT 1)
  FROM found WHERE found.agent IS NOT NULL
)
(SELECT 'agent', agent FROM found WHERE agent IS NOT NULL LIMIT {most})
UNION ALL
SELECT DISTINCT 'tool', r.name FROM policies_tool AS r WHERE {read}
"""


def build_choices(
    reach: QueueReach, filters: QueueFilters, rows: Iterable[QueueRow]
) -> list[FilterSelect]:
    """Build the filter options of a tab; the values of its rows are always among
    them."""
    rows, names = list(rows), _list_names(reach, filters)
    agents = {row.agent for row in rows} | {filters.agent} | names["agent"]
    tools = {row.tool for row in rows} | {filters.tool} | names["tool"]
    risks = {risk.value: risk.value.title() for risk in Risk}
    selects = [
        _build_choice("risk", "Risk", {"": "any"} | risks, filters),
        _build_choice("tool", "Tool", _build_options(tools), filters),
        _build_choice("agent", "Agent", _build_options(agents), filters),
    ]
    if filters.tab != "done":
        selects.append(_build_choice("sort", "Sort", SORTS, filters))
    return selects


def _list_names(reach: QueueReach, filters: QueueFilters) -> dict[str, set[str]]:
    names: dict[str, set[str]] = {"agent": set(), "tool": set()}
    if filters.tab == "done":
        return names
    sql = _NAMES_SQL.format(read=reach.reads, most=MOST_AGENTS)
    with connection.cursor() as cursor:
        cursor.execute(sql, {"mine": reach.queues})
        for kind, name in cursor.fetchall():
            names[kind].add(name)
    return names


def _build_options(values: Iterable[str]) -> dict[str, str]:
    return {"": "any"} | {name: name for name in sorted(values) if name}


def _build_choice(
    name: str, label: str, options: dict[str, str], filters: QueueFilters
) -> FilterSelect:
    return build_filter_select(name, label, options, getattr(filters, name))

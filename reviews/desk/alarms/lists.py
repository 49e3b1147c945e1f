"""The list of alarms: each a sentence, what it means, and where to go from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import OuterRef, QuerySet, Subquery
from django.urls import reverse

from policies.models import Person
from reviews.alarms import wording
from reviews.alarms.wording import Words
from reviews.choices import GRAVE, AlarmKind, AlarmStatus
from reviews.desk.components import navigation
from reviews.desk.components.navigation import UpkeepTab
from reviews.effects import describe
from reviews.models import Alarm, ApprovalRequest, Proposal, Revision
from reviews.presenters.shapes import Part
from reviews.queries.alarms.filters import Filters
from reviews.queries.alarms.visible import visible
from reviews.queries.selects import Choice

PAGE = 50


@dataclass(frozen=True, slots=True)
class Line:
    """One alarm. What it is about may be no effect at all: then only its subject."""

    id: int
    url: str
    kind: str
    said: Words
    grave: bool
    state: str
    looking: str  # who looks at it
    subject: str
    effect: tuple[Part, ...]
    risk: str
    tool: str
    agent: str
    thread: str
    run_url: str
    request_url: str
    letter_url: str  # to an agent that did not take it
    restored_url: str
    log_url: str
    queue: str
    opened_at: datetime
    last_seen_at: datetime
    times: int


@dataclass(frozen=True, slots=True)
class AlarmsPage:
    lines: list[Line]
    filters: Filters
    choices: list[Choice]
    more_url: str
    tabs: list[UpkeepTab]


def page(person: Person, filters: Filters) -> AlarmsPage:
    """What nobody looks at yet on top, then the newest; a page of them."""
    rows = shown(filters.apply(visible(person)))
    found = list(rows.order_by("-pk")[: PAGE + 1])
    more = filters.url(before=found[PAGE - 1].pk) if len(found) > PAGE else ""
    return AlarmsPage(
        lines=sorted(
            lines_of(found[:PAGE]), key=lambda one: one.state != AlarmStatus.OPEN
        ),
        filters=filters,
        choices=filters.choices(),
        more_url=more,
        tabs=navigation.tabs(person, navigation.ALARMS),
    )


def shown(rows: QuerySet[Alarm]) -> QuerySet[Any]:
    """With what a line says beside the alarm itself."""
    current = Revision.objects.filter(
        proposal=OuterRef("proposal"), number=OuterRef("proposal__revision")
    )
    asked = ApprovalRequest.objects.filter(proposal=OuterRef("proposal"))
    return rows.select_related("proposal", "queue", "acknowledged_by").annotate(
        revision=Subquery(current.values("pk")[:1]),
        hash=Subquery(current.values("action_hash")[:1]),
        risk=Subquery(current.values("risk")[:1]),
        request=Subquery(asked.values("pk")[:1]),
    )


def lines_of(rows: Sequence[Any]) -> list[Line]:
    """From alarms as `shown` annotates them."""
    briefs = describe.briefs({one.revision: one.hash for one in rows if one.revision})
    return [_line(one, briefs) for one in rows]


def _line(row: Any, briefs: Mapping[int, describe.Brief]) -> Line:
    proposal = row.proposal
    brief = briefs.get(row.revision)
    log = reverse("reviews:log")
    about = urlencode({"q": proposal.pk if proposal else ""})
    return Line(
        id=row.pk,
        url=reverse("reviews:alarm", args=[row.pk]),
        kind=row.kind,
        said=wording.of(row.kind),
        grave=row.kind in GRAVE,
        state=row.status,
        looking=str(row.acknowledged_by or ""),
        subject=row.subject,
        effect=brief.effect if brief else (),
        risk=row.risk or "",
        tool=proposal.tool_name if proposal else "",
        agent=proposal.agent if proposal else "",
        thread=proposal.thread if proposal else "",
        run_url=_run(proposal) if proposal else "",
        request_url=_request(row.request) if row.request else "",
        letter_url=_letter(row),
        restored_url=_restored(row),
        log_url=f"{log}?{about}" if proposal else f"{log}?kind=alarm",
        queue=row.queue.title if row.queue else "",
        opened_at=row.opened_at,
        last_seen_at=row.last_seen_at,
        times=row.times,
    )


def _restored(alarm: Alarm) -> str:
    is_so = alarm.kind == AlarmKind.RESTORED
    return reverse("reviews:restored") if is_so else ""


def _run(proposal: Proposal) -> str:
    return reverse("agents:thread", args=[proposal.agent, proposal.thread])


def _request(request: str) -> str:
    return reverse("reviews:request_detail", args=[request])


def _letter(alarm: Alarm) -> str:
    """It is kept while its alarm stands; afterwards it may be forgotten."""
    stands = alarm.status != AlarmStatus.CLOSED
    delivery = alarm.data.get("delivery", "") if stands else ""
    return reverse("agents:delivery", args=[delivery]) if delivery else ""

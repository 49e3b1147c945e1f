"""The list of alarms and its filters. Each alarm is a sentence, its meaning and its
links; the filters' whole state is in the URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import OuterRef, QuerySet, Subquery
from django.urls import reverse

from policies.models import Person, Queue
from reviews.alarms import wording
from reviews.alarms.wording import AlarmText
from reviews.choices import AlarmKind, AlarmStatus
from reviews.effects import describe
from reviews.models import Alarm, ApprovalRequest, Revision
from reviews.models.alarms import STANDING
from reviews.presenters.shapes import SentencePart

from ..components.badges import select_visible_alarms
from ..components.formatting import FilterSelect, build_filter_select

STATE_LABELS = {
    "": "Open",
    "open": "Unassigned",
    "acknowledged": "Acknowledged",
    "closed": "Resolved",
    "all": "All",
}
KIND_LABELS = {
    "": "Any",
    **{kind.value: wording.describe_alarm(kind).title for kind in AlarmKind},
}


@dataclass(frozen=True, slots=True)
class AlarmFilters:
    """One view of the alarms."""

    kind: str = ""
    queue: str = ""
    state: str = ""
    before: int | None = None  # only alarms older than this id

    @classmethod
    def read(cls, query: Mapping[str, str]) -> AlarmFilters:
        """Parse the URL's query. An invalid value is ignored and never causes an
        error."""
        kind, state = query.get("kind", ""), query.get("state", "")
        before = query.get("before", "")
        return cls(
            kind=kind if kind in KIND_LABELS else "",
            queue=query.get("queue", "")[:64].replace("\0", ""),
            state=state if state in STATE_LABELS else "",
            before=int(before) if before.isdecimal() and len(before) < 19 else None,
        )

    def url(self, **changes: Any) -> str:
        """The list's URL with these filters, changed by `changes`."""
        values = {name: getattr(self, name) for name in self.__slots__} | changes
        query = urlencode({name: value for name, value in values.items() if value})
        return reverse("reviews:alarms") + (f"?{query}" if query else "")

    @property
    def narrows(self) -> bool:
        """Whether any filter is set, apart from the page."""
        return bool(self.kind or self.queue or self.state)

    def apply(self, rows: QuerySet[Alarm]) -> QuerySet[Alarm]:
        """Apply the filters to a queryset of alarms."""
        if self.kind:
            rows = rows.filter(kind=self.kind)
        if self.queue:
            rows = rows.filter(queue__name=self.queue)
        if self.before is not None:
            rows = rows.filter(pk__lt=self.before)
        if self.state in set(AlarmStatus):
            return rows.filter(status=self.state)
        return rows if self.state == "all" else rows.filter(STANDING)

    def choices(self) -> list[FilterSelect]:
        """The selects above the list."""
        queues = dict(Queue.objects.order_by("title").values_list("name", "title"))
        return [
            build_filter_select("kind", "Type", KIND_LABELS, self.kind),
            build_filter_select("queue", "Queue", {"": "Any", **queues}, self.queue),
            build_filter_select("state", "Status", STATE_LABELS, self.state),
        ]


PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class AlarmLine:
    """One alarm as `annotate_alarms` annotates it. It may concern no effect; then only
    its subject says what it is about."""

    alarm: Any
    text: AlarmText
    effect: tuple[SentencePart, ...]
    delivery_url: str  # the webhook delivery that the endpoint did not take
    log_url: str

    @property
    def closed(self) -> bool:
        """Whether it is resolved, so that nobody has to do anything about it."""
        return bool(self.alarm.status == AlarmStatus.CLOSED)

    @property
    def restored(self) -> bool:
        """Whether it is about a database that was restored, or a standby that took
        over."""
        return self.alarm.kind in {AlarmKind.RESTORED, AlarmKind.PROMOTED}


@dataclass(frozen=True, slots=True)
class AlarmsPage:
    """The page of the list."""

    lines: list[AlarmLine]
    filters: AlarmFilters
    choices: list[FilterSelect]
    more_url: str


def build_alarms_page(person: Person, filters: AlarmFilters) -> AlarmsPage:
    """Build a page of alarms: unacknowledged ones on top, then the newest."""
    rows = annotate_alarms(filters.apply(select_visible_alarms(person)))
    alarms = list(rows.order_by("-pk")[: PAGE_SIZE + 1])
    more = (
        filters.url(before=alarms[PAGE_SIZE - 1].pk) if len(alarms) > PAGE_SIZE else ""
    )
    return AlarmsPage(
        lines=sorted(
            build_alarm_lines(alarms[:PAGE_SIZE]),
            key=lambda line: line.alarm.status != AlarmStatus.OPEN,
        ),
        filters=filters,
        choices=filters.choices(),
        more_url=more,
    )


def annotate_alarms(rows: QuerySet[Alarm]) -> QuerySet[Any]:
    """Annotate alarms with what a line needs: revision, action hash, risk and
    request."""
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


def build_alarm_lines(rows: Sequence[Any]) -> list[AlarmLine]:
    """Build the lines of alarms that `annotate_alarms` annotated."""
    briefs = describe.load_briefs_by_id(
        {row.revision: row.hash for row in rows if row.revision}
    )
    return [_build_line(row, briefs) for row in rows]


def _build_line(row: Any, briefs: Mapping[int, describe.EffectBrief]) -> AlarmLine:
    brief = briefs.get(row.revision)
    about = {"q": row.proposal.pk} if row.proposal else {"kind": "alarm"}
    return AlarmLine(
        alarm=row,
        text=wording.describe_alarm(row.kind),
        effect=brief.effect if brief else (),
        delivery_url=_build_delivery_url(row),
        log_url=f"{reverse('reviews:log')}?{urlencode(about)}",
    )


def _build_delivery_url(alarm: Alarm) -> str:
    """The URL of the failed delivery. Counterseal may delete it after the alarm is
    closed."""
    stands = alarm.status != AlarmStatus.CLOSED
    delivery = alarm.data.get("delivery", "") if stands else ""
    return reverse("agents:delivery", args=[delivery]) if delivery else ""

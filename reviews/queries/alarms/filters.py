"""The list's filters: all of their state is in the address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.urls import reverse

from policies.models import Queue
from reviews.alarms import wording
from reviews.choices import AlarmKind, AlarmStatus
from reviews.models import Alarm
from reviews.models.alarms import STANDING
from reviews.queries.selects import Choice, choice

STATES = {
    "": "Standing",
    "open": "Nobody looks at it",
    "acknowledged": "Somebody looks at it",
    "closed": "Closed",
    "all": "All",
}
KINDS = {"": "Any", **{kind.value: wording.of(kind).title for kind in AlarmKind}}


@dataclass(frozen=True, slots=True)
class Filters:
    """One view of the alarms."""

    kind: str = ""
    queue: str = ""
    state: str = ""
    before: int | None = None  # older than this one

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Filters:
        """From the address. What does not fit is ignored, never an error page."""
        kind, state = query.get("kind", ""), query.get("state", "")
        before = query.get("before", "")
        return cls(
            kind=kind if kind in KINDS else "",
            queue=query.get("queue", "")[:64].replace("\0", ""),
            state=state if state in STATES else "",
            before=int(before) if before.isdecimal() and len(before) < 19 else None,
        )

    def url(self, **changes: Any) -> str:
        values = {name: getattr(self, name) for name in self.__slots__} | changes
        said = urlencode({name: value for name, value in values.items() if value})
        return reverse("reviews:alarms") + (f"?{said}" if said else "")

    @property
    def narrows(self) -> bool:
        return bool(self.kind or self.queue or self.state)

    def apply(self, rows: QuerySet[Alarm]) -> QuerySet[Alarm]:
        if self.kind:
            rows = rows.filter(kind=self.kind)
        if self.queue:
            rows = rows.filter(queue__name=self.queue)
        if self.before is not None:
            rows = rows.filter(pk__lt=self.before)
        if self.state in set(AlarmStatus):
            return rows.filter(status=self.state)
        return rows if self.state == "all" else rows.filter(STANDING)

    def choices(self) -> list[Choice]:
        queues = dict(Queue.objects.order_by("title").values_list("name", "title"))
        return [
            choice("kind", "What", KINDS, self.kind),
            choice("queue", "Queue", {"": "Any", **queues}, self.queue),
            choice("state", "State", STATES, self.state),
        ]

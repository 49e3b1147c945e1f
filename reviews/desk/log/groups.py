"""The log by requests: the records of one proposal are one row with a timeline, at the
place of the newest that fits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace

from django.db.models import Exists, F, OuterRef, Q, Window
from django.db.models.functions import RowNumber

from journal.models import LogRecord
from policies.models import Person
from reviews.desk.components import log_lines
from reviews.desk.components.log_lines import Event

from .filters import Filters, fitting
from .search import Hits

PAGE = 25  # rows
TOLD, TOLD_ALONE = 40, 500  # records in a timeline; where it is the only one


@dataclass(frozen=True, slots=True)
class Group:
    """What fits of one proposal; a record that is of none stands alone."""

    newest: Event
    told: list[Event]  # the oldest first
    more_url: str  # where older ones are that are left out here

    @property
    def folds(self) -> bool:
        return len(self.told) > 1 or bool(self.more_url)


@dataclass(frozen=True, slots=True)
class Groups:
    """One page of rows; `before` is the record that the next page is older than."""

    rows: list[Group]
    before: int | None


def page(person: Person, filters: Filters, hits: Hits | None) -> Groups:
    """Newest first, in two queries and those of the lines. A proposal is on one page
    alone, whichever of its records are older than that page."""
    newer = fitting(person, replace(filters, before=None), hits).order_by()
    newer = newer.filter(proposal=OuterRef("proposal"), pk__gt=OuterRef("pk"))
    newest = fitting(person, filters, hits).filter(Q(proposal="") | ~Exists(newer))
    heads = list(newest[: PAGE + 1])
    shown = heads[:PAGE]
    most = TOLD_ALONE if len(heads) == 1 else TOLD
    told = _told(person, filters, hits, shown, most=most)
    events = log_lines.events(person, {row.pk: row for row in [*shown, *told]}.values())
    by_proposal: dict[str, list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: event.id):
        by_proposal[event.proposal].append(event)
    by_id = {event.id: event for event in events}
    rows = [_group(by_id[row.pk], by_proposal[row.proposal], most) for row in shown]
    return Groups(rows, shown[-1].pk if len(heads) > PAGE else None)


def _told(
    person: Person,
    filters: Filters,
    hits: Hits | None,
    heads: Collection[LogRecord],
    *,
    most: int,
) -> list[LogRecord]:
    """What fits of these proposals, of each the newest and one more than are shown."""
    proposals = [row.proposal for row in heads if row.proposal]
    place = Window(RowNumber(), partition_by=F("proposal"), order_by=F("pk").desc())
    found = fitting(person, replace(filters, before=None), hits).order_by()
    found = found.filter(proposal__in=proposals).annotate(place=place)
    return list(found.filter(place__lte=most + 1))


def _group(newest: Event, told: list[Event], most: int) -> Group:
    if not newest.proposal:
        return Group(newest, [newest], "")
    more = len(told) > most
    url = Filters(q=newest.proposal).url() if more else ""
    return Group(newest, told[-most:], url)

"""The log grouped by proposal.

The records of one proposal are one row with a timeline. The row says, and stands at,
the newest record that fits and changed something: a claim or a delivery does not hide
what was decided before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace

from django.db.models import Exists, F, OuterRef, Q, Window
from django.db.models.functions import RowNumber

from journal.models import LogRecord
from policies.models import Person

from ..components import log_lines
from ..components.log_lines import LogLine
from .filters import LogFilters, select_records
from .search import SearchHits

PAGE_SIZE = 25  # rows
TOLD, TOLD_ALONE = 40, 500  # records in a timeline; in one that is alone


@dataclass(frozen=True, slots=True)
class LogGroup:
    """The records of one proposal that fit; a record without a proposal is its own
    group."""

    headline: LogLine
    timeline: list[LogLine]  # oldest first
    more_url: str  # lists the older records that are left out; may be empty

    @property
    def folds(self) -> bool:
        """Whether the row has a timeline to unfold."""
        return len(self.timeline) > 1 or bool(self.more_url)


@dataclass(frozen=True, slots=True)
class LogGroupPage:
    """One page of groups. `before` is the record id that the next page starts below;
    None on the last page."""

    rows: list[LogGroup]
    before: int | None


def list_log_groups(
    person: Person, filters: LogFilters, hits: SearchHits | None
) -> LogGroupPage:
    """List one page of groups, newest first, in two queries plus those of the lines.

    A proposal is on one page only, even if some of its records are older than that
    page.
    """
    same = select_records(person, replace(filters, before=None), hits).order_by()
    same = same.filter(proposal=OuterRef("proposal"))
    newer, side = same.filter(pk__gt=OuterRef("pk")), log_lines.SIDE_RECORDS
    headlines = select_records(person, filters, hits).filter(
        Q(proposal="")
        | ~side & ~Exists(newer.exclude(side))
        | side & ~Exists(newer) & ~Exists(same.exclude(side))
    )
    heads = list(headlines[: PAGE_SIZE + 1])
    shown = heads[:PAGE_SIZE]
    most = TOLD_ALONE if len(heads) == 1 else TOLD
    timeline = _list_timeline_records(person, filters, hits, shown, most=most)
    events = log_lines.build_log_lines(
        person, {row.pk: row for row in [*shown, *timeline]}.values()
    )
    by_proposal: dict[str, list[LogLine]] = defaultdict(list)
    for event in sorted(events, key=lambda event: event.id):
        by_proposal[event.proposal].append(event)
    by_id = {event.id: event for event in events}
    rows = [
        _build_group(by_id[row.pk], by_proposal[row.proposal], most) for row in shown
    ]
    return LogGroupPage(rows, shown[-1].pk if len(heads) > PAGE_SIZE else None)


def _list_timeline_records(
    person: Person,
    filters: LogFilters,
    hits: SearchHits | None,
    heads: Collection[LogRecord],
    *,
    most: int,
) -> list[LogRecord]:
    """The fitting records of these proposals: for each the newest, and one more than is
    shown, to know whether older ones exist."""
    proposals = [row.proposal for row in heads if row.proposal]
    place = Window(RowNumber(), partition_by=F("proposal"), order_by=F("pk").desc())
    records = select_records(person, replace(filters, before=None), hits).order_by()
    records = records.filter(proposal__in=proposals).annotate(place=place)
    return list(records.filter(place__lte=most + 1))


def _build_group(headline: LogLine, timeline: list[LogLine], most: int) -> LogGroup:
    if not headline.proposal:
        return LogGroup(headline, [headline], "")
    more = len(timeline) > most
    url = LogFilters(q=headline.proposal).url() if more else ""
    return LogGroup(headline, log_lines.fold_claims(timeline[-most:]), url)

"""The log's filters and the query they select.

Their whole state is in the URL, so that a view can be saved, shared and exported.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, time
from typing import Any
from urllib.parse import urlencode

from django.db.models import Exists, Func, OuterRef, Q, QuerySet, TextField
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from journal import clock
from journal.models import LogRecord
from policies.choices import Risk
from policies.models import Person
from reviews.choices import UNGRANTED, ExecutionStatus, RequestStatus, Verdict
from reviews.models import Decision, Execution, Proposal, RequestVersion, Revision

from ..components import log_lines
from . import search
from .search import SearchHits

KINDS = {
    "": "Anything",
    "proposal": "Proposals",
    "request": "Requests",
    "decision": "Decisions",
    "hold": "Claims",
    "note": "Notes",
    "batch": "Batches",
    "grant": "Permits",
    "execution": "Executions",
    "value": "Revealed values",
    "stop": "Stops and pauses",
    "alarm": "Alarms",
    "question": "Questions",
    "repair": "Repairs",
    "reversal": "Reversals",
    "policy": "Policy",
    "agent": "Agents",
    "person": "People",
    "export": "Exports",
}
VERDICTS = {"": "Any", **{v.value: v.value.capitalize() for v in Verdict}}
RISKS = {"": "Any", **{r.value: r.value.capitalize() for r in Risk}}
_UNDONE_STATUSES = [s for s in UNGRANTED if s is not RequestStatus.SUPERSEDED]
OUTCOMES = {
    "": "Any",
    **{s.value: s.value.capitalize() for s in ExecutionStatus},
    **{s.value: s.value.capitalize() for s in _UNDONE_STATUSES},
}
FLAGS = {
    "": "Any",
    "fast": "Decided quickly",
    "check_missed": "Attention check failed",
    "narrow": "On a narrow screen",
    "batch": "In a batch",
    "hold_broken": "Ended another's claim",
    "modify": "Modified",
    "broken": "Claim ended by a supervisor",
    "expired": "Expired",
    "revealed": "Value revealed",
}
# Flags that are kinds of records; the others are flags on decisions.
_FLAG_KINDS = {
    "modify": "request.modified",
    "broken": "hold.broken",
    "expired": "request.expired",
    "revealed": "value.revealed",
}
# Kinds of records that one choice of a kind shows as well.
_BESIDE = {"person": ("authority", "substitution")}
MAX_TEXT = 128  # characters


class _LeafText(Func):
    """A member of the leaf as text: `_LeafText("leaf", "verdict")`."""

    template = "(convert_from(%(expressions)s, 'UTF8')::jsonb ->> '%(member)s')"
    output_field = TextField()

    def __init__(self, field: str, member: str) -> None:
        super().__init__(field, member=member)


@dataclass(frozen=True, slots=True)
class LogFilters:
    """One view of the log. `after` and `until` are kept as the person typed them."""

    q: str = ""
    kind: str = ""
    verdict: str = ""
    actor: str = ""
    agent: str = ""
    tool: str = ""
    risk: str = ""
    rule: str = ""
    outcome: str = ""
    flag: str = ""
    digest: str = ""
    after: str = ""
    until: str = ""
    before: int | None = None  # only records older than this id

    @classmethod
    def read(cls, query: Mapping[str, str]) -> LogFilters:
        """Parse the URL's query. An invalid value is ignored and never causes an
        error."""
        texts = {
            field.name: query.get(field.name, "").strip()[:MAX_TEXT].replace("\0", "")
            for field in fields(cls)
            if field.name != "before"
        }
        for name, known in CHOICES.items():
            if texts[name] not in known:
                texts[name] = ""
        for name in ("after", "until"):
            if _parse_moment(texts[name]) is None:
                texts[name] = ""
        before = query.get("before", "")
        return cls(
            **texts,
            before=int(before) if before.isdecimal() and len(before) < 19 else None,
        )

    def query(self, **changes: Any) -> str:
        """Format the filters that are set as a query string."""
        values = {name: getattr(self, name) for name in self.__slots__} | changes
        return urlencode({name: value for name, value in values.items() if value})

    def url(self, **changes: Any) -> str:
        """The log's URL with these filters, changed by `changes`."""
        query = self.query(**changes)
        return reverse("reviews:log") + (f"?{query}" if query else "")

    @property
    def narrows(self) -> bool:
        """Whether any filter is set, apart from the page."""
        return bool(self.query(before=None))

    @property
    def further(self) -> int:
        """The number of filters set behind "More filters"."""
        return sum(bool(getattr(self, name)) for name in FURTHER_FILTERS)


CHOICES: dict[str, Mapping[str, str]] = {
    "kind": KINDS,
    "verdict": VERDICTS,
    "risk": RISKS,
    "outcome": OUTCOMES,
    "flag": FLAGS,
}
FURTHER_FILTERS = (
    "verdict",
    "risk",
    "outcome",
    "flag",
    "tool",
    "rule",
    "digest",
    "actor",
)


def _parse_moment(typed: str, *, end: bool = False) -> datetime | None:
    """Parse a date, or a date and time, in UTC. With `end`, a date means its last
    moment. A time outside the years that the product handles becomes the nearest one
    inside them. None for other texts."""
    moment: datetime | None
    try:
        if day := parse_date(typed):
            moment = datetime.combine(day, time.max if end else time.min, UTC)
        else:
            moment = parse_datetime(typed)
    except ValueError:
        return None
    if moment is None:
        return None
    at = moment if timezone.is_aware(moment) else moment.replace(tzinfo=UTC)
    return clock.clamp(at)


def select_records(
    person: Person, filters: LogFilters, hits: SearchHits | None = None
) -> QuerySet[LogRecord]:
    """Select the records that this person may read and that fit every filter, newest
    first.

    `hits` are the results of `find_hits`, which covers only the newest proposals.
    Without them the whole log is searched.
    """
    records = log_lines.select_records(person).exclude(
        log_lines.filter_waiting_requests(person)
    )
    hits = hits or find_hits(person, filters, whole=True)
    if hits is not None:
        records = records.filter(hits.fits)
    if filters.actor:
        records = records.exclude(log_lines.filter_hidden_names(person))
    for narrow in (_filter_by_columns, _filter_by_leaf, _filter_by_proposal):
        records = narrow(records, filters)
    return records.order_by("-pk")


def find_hits(
    person: Person, filters: LogFilters, *, whole: bool = False
) -> SearchHits | None:
    """Find what fits the search words; None when there are none. `whole` searches all
    proposals."""
    if not filters.q:
        return None
    until = _parse_moment(filters.until, end=True)
    return search.search_log(person, filters.q, until=until, whole=whole)


def _filter_by_columns(
    records: QuerySet[LogRecord], filters: LogFilters
) -> QuerySet[LogRecord]:
    if filters.kind:
        heads = (filters.kind, *_BESIDE.get(filters.kind, ()))
        fits = (Q(kind__startswith=f"{head}.") for head in heads)
        records = records.filter(functools.reduce(operator.or_, fits))
    if filters.agent:
        records = records.filter(agent=filters.agent)
    if filters.before:
        records = records.filter(pk__lt=filters.before)
    if after := _parse_moment(filters.after):
        records = records.filter(at__gte=after)
    if until := _parse_moment(filters.until, end=True):
        records = records.filter(at__lte=until)
    if filters.actor:
        records = records.filter(actor_id__in=_list_actor_ids(filters.actor))
    return records


def _list_actor_ids(typed: str) -> list[str]:
    named = Person.objects.filter(
        Q(username__iexact=typed)
        | Q(first_name__iexact=typed)
        | Q(last_name__iexact=typed)
    )
    return [typed, *named.values_list("public_id", flat=True)]


def _filter_by_leaf(
    records: QuerySet[LogRecord], filters: LogFilters
) -> QuerySet[LogRecord]:
    if filters.verdict:
        records = records.filter(kind__startswith="decision.").annotate(
            leaf_verdict=_LeafText("leaf", "verdict")
        )
        records = records.filter(leaf_verdict=filters.verdict)
    if filters.flag in _FLAG_KINDS:
        return records.filter(kind=_FLAG_KINDS[filters.flag])
    if filters.flag:
        flagged = Decision.objects.filter(  # the record's own decision
            request=OuterRef("request"),
            reviewer__public_id=OuterRef("actor_id"),
            at=OuterRef("at"),
            flags__contains=[filters.flag],
        )
        records = records.filter(Exists(flagged), kind="decision.recorded")
    return records


def _filter_by_proposal(
    records: QuerySet[LogRecord], filters: LogFilters
) -> QuerySet[LogRecord]:
    of = {"proposal": OuterRef("proposal")}
    revisions = Revision.objects.filter(**of)
    if filters.tool:
        named = Proposal.objects.filter(
            pk=OuterRef("proposal"), tool_name__iexact=filters.tool
        )
        records = records.filter(Exists(named))
    if filters.risk:
        records = records.filter(Exists(revisions.filter(risk=filters.risk)))
    if filters.digest:
        records = records.filter(_build_hash_condition(filters.digest))
    if filters.rule:
        ruled = RequestVersion.objects.filter(
            request__proposal=OuterRef("proposal"),
            rules__contains=[{"id": filters.rule}],
        )
        records = records.filter(Exists(ruled))
    if filters.outcome in set(ExecutionStatus):
        ran = Execution.objects.filter(**of, status=filters.outcome)
        return records.filter(Exists(ran))
    if filters.outcome:
        ended = Proposal.objects.filter(
            pk=OuterRef("proposal"), request__status=filters.outcome
        )
        records = records.filter(Exists(ended))
    return records


def _build_hash_condition(digest: str) -> Q:
    """Match records of an action by the beginning of its hash, as pages print it."""
    start = digest.removeprefix("sha256:").replace("-", "").lower()
    hashes = Revision.objects.filter(
        proposal=OuterRef("proposal"), action_hash__startswith=f"sha256:{start}"
    )
    return Q(Exists(hashes))

"""The log's page models: the list, and one record in full."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from django.db.models import F
from django.urls import reverse
from django.utils import timezone

from journal import archives
from journal.archives import ArchivedPart
from journal.errors import NotFound
from journal.models import LogPeriod, LogRecord
from policies.models import Person
from reviews import permissions
from reviews.choices import EXECUTION_SPECS, GIVEN_REASON_LABELS
from reviews.effects.wording import format_short_hash
from reviews.models import Decision, Execution
from reviews.roles import Permission

from ..components import log_lines, saved_views, snapshots
from ..components.formatting import FilterSelect, build_filter_select
from ..components.log_lines import LogLine
from ..components.log_sentences import find_other_person
from ..components.saved_views import SavedViewList
from . import groups as log_groups
from . import search
from .filters import CHOICES, LogFilters, find_hits
from .groups import LogGroup

SEARCH_CUT_NOTE = (
    f"Only the newest {search.MAX_PROPOSALS:,} matching requests were searched."
    " To find earlier ones, add a word or set the To date."
)
LABELS = {
    "kind": "Type",
    "verdict": "Verdict",
    "risk": "Risk",
    "outcome": "Outcome",
    "flag": "Flag",
}


@dataclass(frozen=True, slots=True)
class LogDay:
    """The groups of one day, in the reader's time zone."""

    name: datetime
    groups: list[LogGroup]


@dataclass(frozen=True, slots=True)
class LogPage:
    """The list: filters, days and the saved views."""

    filters: LogFilters
    days: list[LogDay]
    kind: FilterSelect
    further: list[FilterSelect]
    older_url: str
    archived: list[ArchivedPart]  # below the last page
    alone: bool  # whether there is one row only; its timeline is then unfolded
    scope_said: str
    searched_said: str
    queue_url: str  # the same search among what waits; empty without a search
    may_export: bool
    saved: SavedViewList

    @property
    def query(self) -> str:
        """The view as an export stores it."""
        return self.filters.query(before=None)


def build_log_page(person: Person, filters: LogFilters) -> LogPage:
    """Build a page of the log, newest first, in ten queries plus the saved views."""
    hits = find_hits(person, filters)
    page = log_groups.list_log_groups(person, filters, hits)
    older = filters.url(before=page.before) if page.before else ""
    days = [
        LogDay(name=batch[0].headline.at, groups=batch)
        for _, same in groupby(page.rows, key=_to_local_date)
        if (batch := list(same))
    ]
    query = filters.query(before=None)
    kind, *further = [_build_choice(name, filters) for name in CHOICES]
    return LogPage(
        filters=filters,
        days=days,
        kind=kind,
        further=further,
        older_url=older,
        archived=[] if older else archives.list_archived_parts(),
        alone=len(page.rows) == 1,
        scope_said=_describe_scope(person),
        searched_said=SEARCH_CUT_NOTE if hits and hits.cut else "",
        queue_url=_build_queue_url(person, filters),
        may_export=permissions.has_permission(person, Permission.EXPORT),
        saved=saved_views.build_saved_view_list(
            person, "log", query, offers=bool(query)
        ),
    )


def _build_queue_url(person: Person, filters: LogFilters) -> str:
    """Where people who decide find what waits for them: this list leaves it out."""
    if not filters.q or permissions.never_decides(person):
        return ""
    return f"{reverse('reviews:queue')}?{urlencode({'q': filters.q})}"


def _to_local_date(row: LogGroup) -> date:
    return timezone.localdate(row.headline.at)


def _build_choice(name: str, filters: LogFilters) -> FilterSelect:
    return build_filter_select(
        name, LABELS[name], CHOICES[name], getattr(filters, name)
    )


def _describe_scope(person: Person) -> str:
    if permissions.has_permission(person, Permission.SEE_LOG):
        return "Every change is recorded here, newest first."
    return "Your own decisions and the runs of agents you own, newest first."


@dataclass(frozen=True, slots=True)
class HashComparison:
    """The approved hash beside the granted one, and whether they are equal."""

    approved: str
    executed: str
    same: bool
    outcome: str


@dataclass(frozen=True, slots=True)
class RecordPage:
    """One record in full: its sentence, its codes, its bytes and its position."""

    event: LogLine
    subject: Person | None  # to whom it was done
    of_agent: str  # whose settings or keys it is about; may be empty
    leaf: list[tuple[str, str]]
    leaf_hash: str
    decision: list[tuple[str, str]]
    as_seen_url: str
    ran: HashComparison | None
    decider: str  # public id of the person who decided; empty for other records
    earlier_url: str
    later_url: str


def load_record_by_number(person: Person, seq: int) -> RecordPage:
    """Load a record by its sequence number. Raises NotFound when this person may not
    see it, and says where it is when it was archived."""
    row = log_lines.select_records(person).filter(position__seq=seq).first()
    period = LogPeriod.objects.filter(
        archived_at__isnull=False, first_seq__lte=seq, first_seq__gt=seq - F("records")
    ).first()
    if row is None and period is not None and period.archived_at is not None:
        raise NotFound(
            f"Record {seq} was archived on {period.archived_at:%Y-%m-%d} in"
            f" {period.archive_file}. An administrator has that file."
        )
    return _build_record_page(person, row)


def load_record_by_id(person: Person, pk: int) -> RecordPage:
    """Load a record by its id, while it has no sequence number yet. Raises NotFound."""
    return _build_record_page(
        person, log_lines.select_records(person).filter(pk=pk).first()
    )


def _build_record_page(person: Person, row: LogRecord | None) -> RecordPage:
    if row is None:
        raise NotFound
    leaf = json.loads(bytes(row.leaf))
    masked = row.request in log_lines.find_masked_requests(person, [row])
    if masked and not log_lines.is_party(person, row, leaf):
        leaf["actor"] = {
            "kind": row.actor_kind,
            "id": "hidden until the request is resolved",
        }
    position = getattr(row, "position", None)
    decision = _find_decision(row, leaf)
    return RecordPage(
        event=log_lines.build_log_lines(person, [row])[0],
        subject=None if masked else _load_subject(leaf),
        of_agent=row.agent if row.kind.startswith("agent.") else "",
        leaf=[
            (name, format_leaf_value(member))
            for name, member in leaf.items()
            if member is not None
        ],
        leaf_hash=bytes(position.leaf_hash).hex() if position else "",
        decision=_list_form_fields(decision) if decision else [],
        as_seen_url=_build_as_seen_url(person, decision or _find_batch_decision(leaf)),
        ran=_compare_hashes(row, leaf),
        decider=_find_decider(row, leaf),
        earlier_url=_find_neighbour_url(person, row, later=False),
        later_url=_find_neighbour_url(person, row, later=True),
    )


def _load_subject(leaf: dict[str, Any]) -> Person | None:
    public_id = find_other_person(leaf)
    return Person.objects.filter(public_id=public_id).first() if public_id else None


def format_leaf_value(member: Any) -> str:
    """Format a member of the leaf as words: `kind person, id u-…`."""
    if isinstance(member, dict):
        return ", ".join(
            f"{name} {format_leaf_value(item)}" for name, item in member.items()
        )
    if isinstance(member, list):
        return "; ".join(format_leaf_value(item) for item in member) or "none"
    if isinstance(member, bool):
        return "yes" if member else "no"
    return "none" if member is None else str(member)


def _find_decision(row: LogRecord, leaf: dict[str, Any]) -> Decision | None:
    if row.kind != "decision.recorded":
        return None
    return (
        Decision.objects.select_related("request__proposal")
        .filter(
            request=row.request,
            version=leaf["version"],
            reviewer__public_id=row.actor_id,
        )
        .first()
    )


def _list_form_fields(decision: Decision) -> list[tuple[str, str]]:
    took = f"{decision.took_ms / 1000:.1f} s" if decision.took_ms is not None else ""
    asked = decision.check_asked
    fields = [
        ("Verdict", decision.verdict),
        ("Reason", GIVEN_REASON_LABELS.get(decision.reason_code, "")),
        ("Note", decision.reason),
        ("Hash on screen", format_short_hash(decision.action_hash)),
        ("Time to decide", took),
        ("Attention check", str(asked.get("question", ""))),
        ("Answer", "; ".join(str(answer) for answer in asked.get("answers", []))),
        ("Flags", ", ".join(decision.flags)),
        (
            "Authority",
            format_leaf_value({k: v for k, v in decision.authority.items() if v}),
        ),
    ]
    return [(label, value) for label, value in fields if value]


def _find_decider(row: LogRecord, leaf: dict[str, Any]) -> str:
    """The public id of the person who decided; empty if this reader may not know it."""
    votes = row.kind in {"decision.recorded", "batch.decided"}
    shown = leaf["actor"]["id"] == row.actor_id and row.actor_kind == "person"
    return row.actor_id if votes and shown else ""


def _find_batch_decision(leaf: dict[str, Any]) -> Decision | None:
    if leaf["kind"] != "batch.decided":
        return None
    snapshot = snapshots.find_batch_snapshot(leaf["data"]["batch"])
    return snapshot.decision if snapshot else None


def _build_as_seen_url(person: Person, decision: Decision | None) -> str:
    if decision is None or snapshots.find_snapshot(decision) is None:
        return ""
    own = decision.reviewer_id == person.pk
    if not own and not permissions.has_permission(person, Permission.SEE_LOG):
        return ""
    return reverse("reviews:as_seen", args=[decision.request_id, decision.pk])


def _compare_hashes(row: LogRecord, leaf: dict[str, Any]) -> HashComparison | None:
    if not row.kind.startswith(("execution.", "grant.", "request.authorized")):
        return None
    executions = Execution.objects.select_related("grant__revision")
    execution = executions.filter(proposal=row.proposal).first()
    if execution is None:
        return None
    approved = execution.grant.revision.action_hash
    executed = execution.grant.action_hash
    return HashComparison(
        approved=format_short_hash(approved),
        executed=format_short_hash(executed),
        same=approved == executed,
        outcome=EXECUTION_SPECS[execution.status].label.lower(),
    )


def _find_neighbour_url(person: Person, row: LogRecord, *, later: bool) -> str:
    """The URL of the next record that this person may read, ordered by number if this
    record has one; empty at the end."""
    records = log_lines.select_records(person)
    position = getattr(row, "position", None)
    by, here = ("position__seq", position.seq) if position else ("pk", row.pk)
    if later:
        other = records.filter(**{f"{by}__gt": here}).order_by(by).first()
    else:
        other = records.filter(**{f"{by}__lt": here}).order_by(f"-{by}").first()
    return log_lines.build_record_url(other) if other else ""

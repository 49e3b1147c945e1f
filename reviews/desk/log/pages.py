"""The log's page models: the list, and one record in full."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Any

from django.urls import reverse
from django.utils import timezone

from journal.errors import NotFound
from journal.models import LogRecord
from policies.models import Person
from reviews import permissions
from reviews.choices import ExecutionStatus
from reviews.desk.components import log_lines, saved_views, snapshots
from reviews.desk.components.formatting import Choice, choice
from reviews.desk.components.log_lines import Event
from reviews.desk.components.saved_views import Saved
from reviews.effects.wording import short_hash
from reviews.models import Decision, Execution
from reviews.permissions import Permission

from . import groups as log_groups
from . import search as searching
from .filters import CHOICES, Filters, search
from .groups import Group

SEARCHED = (
    f"Only the newest {searching.MOST:,} requests with these words are here."
    " For earlier ones add a word, or a date under To."
)
LABELS = {
    "kind": "What",
    "verdict": "Verdict",
    "risk": "Risk",
    "outcome": "Outcome",
    "flag": "Flag",
}


@dataclass(frozen=True, slots=True)
class Day:
    """The groups of one day, in the reader's time zone."""

    name: datetime
    groups: list[Group]


@dataclass(frozen=True, slots=True)
class LogPage:
    """The list: filters, days and the saved views."""

    filters: Filters
    days: list[Day]
    kind: Choice
    further: list[Choice]
    older_url: str
    alone: bool  # whether there is one row only; its timeline is then unfolded
    scope_said: str
    searched_said: str
    may_export: bool
    saved: Saved

    @property
    def query(self) -> str:
        """The view as an export stores it."""
        return self.filters.query(before=None)


def page(person: Person, filters: Filters) -> LogPage:
    """Build a page of the log, newest first, in ten queries plus the saved views."""
    hits = search(person, filters)
    found = log_groups.page(person, filters, hits)
    older = filters.url(before=found.before) if found.before else ""
    days = [
        Day(name=batch[0].newest.at, groups=batch)
        for _, same in groupby(found.rows, key=_day)
        if (batch := list(same))
    ]
    said = filters.query(before=None)
    kind, *further = [_choice(name, filters) for name in CHOICES]
    return LogPage(
        filters=filters,
        days=days,
        kind=kind,
        further=further,
        older_url=older,
        alone=len(found.rows) == 1,
        scope_said=_scope_said(person),
        searched_said=SEARCHED if hits and hits.cut else "",
        may_export=permissions.allowed(person, Permission.EXPORT),
        saved=saved_views.of(person, "log", said, offers=bool(said)),
    )


def _day(row: Group) -> date:
    return timezone.localdate(row.newest.at)


def _choice(name: str, filters: Filters) -> Choice:
    return choice(name, LABELS[name], CHOICES[name], getattr(filters, name))


def _scope_said(person: Person) -> str:
    if permissions.allowed(person, Permission.SEE_LOG):
        return "Every change leaves a record here, newest first."
    return "What you decided, and the runs of agents you own, newest first."


@dataclass(frozen=True, slots=True)
class Ran:
    """The approved hash beside the granted one, and whether they are equal."""

    approved: str
    executed: str
    same: bool
    outcome: str


@dataclass(frozen=True, slots=True)
class RecordPage:
    """One record in full: its sentence, its codes, its bytes and its position."""

    event: Event
    leaf: list[tuple[str, str]]
    leaf_hash: str
    decision: list[tuple[str, str]]
    as_seen_url: str
    ran: Ran | None
    decider: str  # public id of the person who decided; empty for other records
    earlier_url: str
    later_url: str


def numbered(person: Person, seq: int) -> RecordPage:
    """Load a record by its sequence number. Raises NotFound when this person may not
    see it."""
    return _record(person, log_lines.records(person).filter(position__seq=seq).first())


def record(person: Person, pk: int) -> RecordPage:
    """Load a record by its id, while it has no sequence number yet. Raises NotFound."""
    return _record(person, log_lines.records(person).filter(pk=pk).first())


def _record(person: Person, row: LogRecord | None) -> RecordPage:
    if row is None:
        raise NotFound
    leaf = json.loads(bytes(row.leaf))
    if (
        row.request in log_lines.masked(person, [row])
        and row.actor_id != person.public_id
    ):
        leaf["actor"] = {"kind": row.actor_kind, "id": "hidden until it is settled"}
    position = getattr(row, "position", None)
    decision = _decision(row, leaf)
    return RecordPage(
        event=log_lines.events(person, [row])[0],
        leaf=[(name, plain(said)) for name, said in leaf.items() if said is not None],
        leaf_hash=bytes(position.leaf_hash).hex() if position else "",
        decision=_form(decision) if decision else [],
        as_seen_url=_as_seen(person, decision or _of_batch(leaf)),
        ran=_ran(row, leaf),
        decider=_decider(row, leaf),
        earlier_url=_neighbour(person, row, later=False),
        later_url=_neighbour(person, row, later=True),
    )


def plain(said: Any) -> str:
    """Format a member of the leaf as words: `kind person, id u-…`."""
    if isinstance(said, dict):
        return ", ".join(f"{name} {plain(item)}" for name, item in said.items())
    if isinstance(said, list):
        return "; ".join(plain(item) for item in said) or "none"
    if isinstance(said, bool):
        return "yes" if said else "no"
    return str(said)


def _decision(row: LogRecord, leaf: dict[str, Any]) -> Decision | None:
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


def _form(decision: Decision) -> list[tuple[str, str]]:
    """List the fields of the form that the decision was made with."""
    took = f"{decision.took_ms / 1000:.1f} s" if decision.took_ms is not None else ""
    asked = decision.check_asked
    found = [
        ("Verdict", decision.verdict),
        ("Reason", decision.reason_code.replace("_", " ")),
        ("Note", decision.reason),
        ("Hash seen", short_hash(decision.action_hash)),
        ("From page to commit", took),
        ("Attention check", str(asked.get("question", ""))),
        ("Answered", "; ".join(str(one) for one in asked.get("answers", []))),
        ("Flags", ", ".join(decision.flags)),
        ("Authority", plain({k: v for k, v in decision.authority.items() if v})),
    ]
    return [(label, value) for label, value in found if value]


def _decider(row: LogRecord, leaf: dict[str, Any]) -> str:
    """The public id of the person who decided; empty if this reader may not know it."""
    votes = row.kind in {"decision.recorded", "batch.decided"}
    shown = leaf["actor"]["id"] == row.actor_id and row.actor_kind == "person"
    return row.actor_id if votes and shown else ""


def _of_batch(leaf: dict[str, Any]) -> Decision | None:
    """The decision that keeps the page evidence of a batch."""
    if leaf["kind"] != "batch.decided":
        return None
    kept = snapshots.of_batch(leaf["data"]["batch"])
    return kept.decision if kept else None


def _as_seen(person: Person, decision: Decision | None) -> str:
    if decision is None or snapshots.of(decision) is None:
        return ""
    mine = decision.reviewer_id == person.pk
    if not mine and not permissions.allowed(person, Permission.SEE_LOG):
        return ""
    return reverse("reviews:as_seen", args=[decision.request_id, decision.pk])


def _ran(row: LogRecord, leaf: dict[str, Any]) -> Ran | None:
    """Compare the hash that the grant allows with the hash that was approved."""
    if not row.kind.startswith(("execution.", "grant.", "request.authorized")):
        return None
    found = Execution.objects.select_related("grant__revision")
    execution = found.filter(proposal=row.proposal).first()
    if execution is None:
        return None
    approved = execution.grant.revision.action_hash
    executed = execution.grant.action_hash
    return Ran(
        approved=short_hash(approved),
        executed=short_hash(executed),
        same=approved == executed,
        outcome=log_lines.OUTCOMES[ExecutionStatus(execution.status)],
    )


def _neighbour(person: Person, row: LogRecord, *, later: bool) -> str:
    """The URL of the next record that this person may read, ordered by number if this
    record has one; empty at the end."""
    found = log_lines.records(person)
    position = getattr(row, "position", None)
    by, here = ("position__seq", position.seq) if position else ("pk", row.pk)
    if later:
        other = found.filter(**{f"{by}__gt": here}).order_by(by).first()
    else:
        other = found.filter(**{f"{by}__lt": here}).order_by(f"-{by}").first()
    return log_lines.url_of(other) if other else ""

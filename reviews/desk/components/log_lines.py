"""Records as lines of a list or of a history."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, Subquery
from django.urls import reverse

from journal.models import LogRecord
from policies.models import Person
from reviews.choices import ExecutionStatus
from reviews.effects import describe
from reviews.effects.wording import Part
from reviews.models import ApprovalRequest, Decision, Execution, Revision
from reviews.presenters import shapes
from reviews.queries.log import access

from .log_sentences import answer as log_sentences_answer
from .log_sentences import flags as log_sentences_flags
from .log_sentences import said as log_sentences_said
from .log_sentences import who

HISTORY = 100
DECIDED = "decision.recorded"
OUTCOMES = {
    ExecutionStatus.QUEUED: "queued",
    ExecutionStatus.CLAIMED: "running",
    ExecutionStatus.SUCCEEDED: "done",
    ExecutionStatus.FAILED: "failed",
    ExecutionStatus.UNKNOWN: "outcome unknown",
    ExecutionStatus.REFUSED: "refused",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One record as a line."""

    id: int
    url: str
    at: datetime
    said: tuple[Part, ...]
    effect: tuple[shapes.Part, ...]
    tool: str
    agent: str
    thread: str
    risk: str
    proposal: str
    request_url: str
    seq: int | None
    kind: str
    flags: list[str]
    policy: int | None
    took: str
    outcome: str
    answer: str  # of a tool or an agent; untrusted text


@dataclass(frozen=True, slots=True)
class Told:
    """One record of a history: when and what."""

    at: datetime
    said: tuple[Part, ...]
    flags: list[str]
    answer: str


@dataclass(frozen=True)
class _Around:
    """What the lines need beside their records, each read once."""

    names: Mapping[str, str]
    revisions: Mapping[tuple[str, int], Revision]
    masked: set[str]
    took: Mapping[tuple[str, int, str], int]


def events(person: Person, rows: Iterable[LogRecord]) -> list[Event]:
    """Records as lines, in five queries however many there are."""
    rows = list(rows)
    leaves = {row.pk: json.loads(bytes(row.leaf)) for row in rows}
    around = _Around(
        names=access.names_of(r.actor_id for r in rows if r.actor_kind == "person"),
        revisions=_revisions(leaves.values()),
        masked=access.masked(person, rows),
        took=_took(rows),
    )
    return [_event(person, row, leaves[row.pk], around) for row in rows]


def history(person: Person, request: ApprovalRequest) -> list[Told]:
    """A request's records, oldest first, in two queries at most."""
    rows = access.records_about(person, request)[:HISTORY]
    names = access.names_of(r.actor_id for r in rows if r.actor_kind == "person")
    hides = access.hides_names(person, request)
    told = []
    for row in rows:
        leaf = json.loads(bytes(row.leaf))
        actor = who(row, names, hide=hides and row.actor_id != person.public_id)
        line = log_sentences_said(row, leaf, actor)
        told.append(
            Told(row.at, line, log_sentences_flags(leaf), log_sentences_answer(leaf))
        )
    return told


def _revisions(
    leaves: Iterable[Mapping[str, Any]],
) -> dict[tuple[str, int], Revision]:
    wanted = {leaf["proposal"] for leaf in leaves if leaf["proposal"]}
    ran = Execution.objects.filter(proposal=OuterRef("proposal")).values("status")
    found = Revision.objects.filter(proposal__in=wanted).annotate(ran=Subquery(ran))
    return {
        (one.proposal_id, one.number): one
        for one in found.select_related("tool", "proposal")
    }


def _took(rows: Iterable[LogRecord]) -> dict[tuple[str, int, str], int]:
    """Milliseconds from the page to the commit, by request, version and person."""
    wanted = {row.request for row in rows if row.kind == DECIDED}
    found = Decision.objects.filter(request__in=wanted)
    return {
        (request, version, person): took
        for request, version, person, took in found.values_list(
            "request_id", "version", "reviewer__public_id", "took_ms"
        )
        if took is not None
    }


def url_of(row: LogRecord) -> str:
    """The record's address: its number in the log, as soon as it has one."""
    position = getattr(row, "position", None)
    if position is None:
        return reverse("reviews:log_new", args=[row.pk])
    return reverse("reviews:log_record", args=[position.seq])


def _outcome(revision: Revision | None) -> str:
    status = getattr(revision, "ran", None)
    return OUTCOMES[ExecutionStatus(status)] if status else ""


def _event(
    person: Person, row: LogRecord, leaf: Mapping[str, Any], around: _Around
) -> Event:
    revision = around.revisions.get((leaf["proposal"], leaf["revision"] or 1))
    position = getattr(row, "position", None)
    hide = row.request in around.masked and row.actor_id != person.public_id
    about = reverse("reviews:request_detail", args=[row.request]) if row.request else ""
    return Event(
        id=row.pk,
        url=url_of(row),
        at=row.at,
        said=log_sentences_said(row, leaf, who(row, around.names, hide=hide)),
        effect=describe.brief_of(revision).effect if revision else (),
        tool=revision.tool.name if revision and revision.tool else "",
        agent=row.agent,
        thread=row.thread,
        risk=revision.risk if revision else "",
        proposal=row.proposal,
        request_url=about,
        seq=position.seq if position else None,
        kind=row.kind,
        flags=log_sentences_flags(leaf),
        policy=leaf["policy"] or (revision.policy_number if revision else None),
        took=_took_of(row, leaf, around),
        outcome=_outcome(revision),
        answer=log_sentences_answer(leaf),
    )


def _took_of(row: LogRecord, leaf: Mapping[str, Any], around: _Around) -> str:
    """How long a decision took; whatever else its person did took another time."""
    if row.kind != DECIDED:
        return ""
    return _seconds(around.took.get((row.request, leaf["version"], row.actor_id)))


def _seconds(took_ms: int | None) -> str:
    if took_ms is None:
        return ""
    seconds = round(took_ms / 1000)
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"

"""The log as sentences. Codes and hashes are on a record's own page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse

from journal.errors import NotFound
from journal.models import LogRecord
from policies.models import Person
from reviews import permissions
from reviews.choices import OPEN
from reviews.models import ApprovalRequest, Decision, Proposal, Revision
from reviews.permissions import Permission
from reviews.presenters import shapes

from . import showing
from .words import Part, sentence

PAGE = 100
HIDDEN_NAME = "A reviewer"
# What says how someone voted; hidden from those who may still decide.
VOTES = ("decision.",)

KINDS = {
    "": "Anything",
    "proposal": "Proposals",
    "request": "Requests",
    "decision": "Decisions",
    "execution": "Executions",
    "stop": "Stops",
    "policy": "Policies",
}
SENTENCES = {
    "proposal.submitted": "{who} proposed",
    "proposal.blocked": "{who} proposed what the policy blocks",
    "proposal.announced": "It was announced to people",
    "request.opened": "People were asked",
    "request.revised": "{who} replaced the proposal; earlier votes are void",
    "request.modified": "{who} changed the arguments; earlier votes are void",
    "request.escalated": "{who} escalated it",
    "request.extended": "{who} gave it more time",
    "lease.taken": "{who} took it up",
    "lease.released": "{who} gave it back",
    "lease.lapsed": "A hold on it ran out",
    "lease.broken": "{who} broke another's hold",
    "lease.offered": "{who} offered it to a colleague",
    "lease.handed_over": "{who} took over what was offered",
    "note.added": "{who} wrote a note",
    "request.recallable": "Approved; the recall window opened",
    "request.recalled": "{who} recalled the approval; nothing was executed",
    "request.authorized": "It was authorized",
    "request.rejected": "{who} rejected it",
    "request.expired": "Nobody answered in time; nothing was executed",
    "request.withdrawn": "It was withdrawn; there is nothing to decide",
    "request.superseded": "A later proposal replaced it",
    "decision.tier_lowered": "{who} lowered the tier by an edit",
    "grant.issued": "A one-use grant was issued",
    "grant.spent": "The grant was used",
    "grant.expired": "The grant expired; nothing was executed",
    "grant.revoked": "The grant was revoked; nothing was executed",
    "execution.queued": "It was queued to run",
    "execution.claimed": "It started",
    "execution.reclaimed": "It was taken over after a lost worker",
    "execution.succeeded": "It was done",
    "execution.failed": "It failed; nothing was changed",
    "execution.requeued": "It failed without effect and will be tried again",
    "execution.unknown": "Its outcome is unknown; a person must say",
    "execution.refused": "A check before the effect refused it",
    "execution.retried": "{who} asked to try it again",
    "execution.settled": "{who} said what had happened",
    "stop.raised": "{who} stopped {scope} {key}",
    "stop.lift_asked": "{who} asked to switch {scope} {key} on again",
    "stop.lifted": "{who} switched {scope} {key} on again",
    "policy.saved": "{who} saved policy version {version}",
    "policy.activated": "{who} activated policy version {version}",
    "policy.retired": "Policy version {version} was retired",
    "thread.started": "{who} began a run",
    "thread.finished": "{who} finished the run",
    "agent.registered": "{who} registered an agent",
    "agent.key_issued": "{who} issued a key of an agent",
    "agent.key_revoked": "{who} revoked a key of an agent",
    "person.token_minted": "{who} minted a personal token",
    "person.token_revoked": "{who} revoked a personal token",
}
VERDICTS = {
    "approve": "approved",
    "reject": "rejected",
    "modify": "modified",
    "escalate": "escalated",
}
TRIED = {
    "approve": "to approve",
    "reject": "to reject",
    "modify": "to modify",
    "escalate": "to escalate",
}


@dataclass(frozen=True, slots=True)
class Filters:
    """The log's state, all of it in the address."""

    q: str = ""
    kind: str = ""
    agent: str = ""
    before: int | None = None

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Filters:
        """From the address. What does not fit is ignored, never an error page."""
        kind, before = query.get("kind", ""), query.get("before", "")
        return cls(
            q=query.get("q", "").strip()[:128],
            kind=kind if kind in KINDS else "",
            agent=query.get("agent", "")[:64],
            before=int(before) if before.isdecimal() and len(before) < 19 else None,
        )

    def url(self, **changes: Any) -> str:
        values = {name: getattr(self, name) for name in self.__slots__} | changes
        said = {name: value for name, value in values.items() if value}
        return reverse("reviews:log") + (f"?{urlencode(said)}" if said else "")


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
    request_url: str
    seq: int | None
    kind: str
    flags: list[str]


@dataclass(frozen=True, slots=True)
class Told:
    """One record of a history: when and what."""

    at: datetime
    said: tuple[Part, ...]
    flags: list[str]


@dataclass(frozen=True, slots=True)
class Day:
    name: datetime
    events: list[Event]


@dataclass(frozen=True, slots=True)
class LogPage:
    filters: Filters
    days: list[Day]
    kinds: list[tuple[str, str]]
    older_url: str
    scope_said: str


def records(person: Person) -> QuerySet[LogRecord]:
    """All for supervisors, administrators and auditors; else one's own decisions and
    one's own agents' runs. Votes of others on what is not settled are left out for
    everybody who may still decide."""
    found = LogRecord.objects.select_related("position")
    if not permissions.allowed(person, Permission.SEE_LOG):
        found = found.filter(_own(person))
    if permissions.roles_of(person) & permissions.NEVER_DECIDE:
        return found
    return found.exclude(_others_votes(person))


def _own(person: Person) -> Q:
    decided = Decision.objects.filter(reviewer=person, request=OuterRef("request"))
    mine = Proposal.objects.filter(
        pk=OuterRef("proposal"), barred__contains=[person.public_id]
    )
    return Q(actor_id=person.public_id) | Exists(decided) | Exists(mine)


def _others_votes(person: Person) -> Q:
    unsettled = ApprovalRequest.objects.filter(pk=OuterRef("request"), status__in=OPEN)
    votes = Q()
    for prefix in VOTES:
        votes |= Q(kind__startswith=prefix)
    return votes & Exists(unsettled) & ~Q(actor_id=person.public_id)


def records_about(person: Person, request: ApprovalRequest) -> list[LogRecord]:
    """The history of one request, oldest first, as this person may read it."""
    found = LogRecord.objects.select_related("position").filter(
        proposal=request.proposal_id
    )
    if not permissions.roles_of(person) & permissions.NEVER_DECIDE:
        found = found.exclude(_others_votes(person))
    return list(found.order_by("pk")[:PAGE])


def history(person: Person, request: ApprovalRequest) -> list[Told]:
    """The same as lines, in two queries at most."""
    rows = records_about(person, request)
    names = names_of(row.actor_id for row in rows if row.actor_kind == "person")
    hides = _hides_names(person, request)
    told = []
    for row in rows:
        leaf = json.loads(bytes(row.leaf))
        actor = who(row, names, hide=hides and row.actor_id != person.public_id)
        told.append(Told(row.at, said(row, leaf, actor), _flags(leaf)))
    return told


def _hides_names(person: Person, request: ApprovalRequest) -> bool:
    if permissions.roles_of(person) & permissions.NEVER_DECIDE:
        return False
    owned = person.public_id in request.proposal.barred
    return owned or request.status in OPEN


@dataclass(frozen=True, slots=True)
class RecordPage:
    """One record in full: its sentence, its codes, its bytes."""

    event: Event
    leaf: list[tuple[str, str]]
    leaf_hash: str


def record(person: Person, pk: int) -> RecordPage:
    """One record. Raises NotFound when this person may not see it."""
    row = records(person).filter(pk=pk).first()
    if row is None:
        raise NotFound
    event = lines(person, [row])[0]
    leaf = json.loads(bytes(row.leaf))
    if row.request in _masked(person, [row]) and row.actor_id != person.public_id:
        leaf["actor"] = {"kind": row.actor_kind, "id": "hidden until it is settled"}
    position = getattr(row, "position", None)
    return RecordPage(
        event=event,
        leaf=[
            (name, _plain(value)) for name, value in leaf.items() if value is not None
        ],
        leaf_hash=bytes(position.leaf_hash).hex() if position else "",
    )


def _plain(value: Any) -> str:
    """A leaf's member as words: `kind person, id u-…`."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(item)}" for name, item in value.items())
    if isinstance(value, list):
        return "; ".join(_plain(item) for item in value) or "none"
    return str(value)


def page(person: Person, filters: Filters) -> LogPage:
    """A page of the log, newest first, in five queries."""
    found = _narrowed(records(person), filters).order_by("-pk")
    rows = list(found[: PAGE + 1])
    events = lines(person, rows[:PAGE])
    older = filters.url(before=rows[PAGE - 1].pk) if len(rows) > PAGE else ""
    days = [
        Day(name=batch[0].at, events=batch)
        for _, group in groupby(events, key=lambda event: event.at.date())
        if (batch := list(group))
    ]
    return LogPage(
        filters=filters,
        days=days,
        kinds=list(KINDS.items()),
        older_url=older,
        scope_said=_scope_said(person),
    )


def _scope_said(person: Person) -> str:
    if permissions.allowed(person, Permission.SEE_LOG):
        return "Every change leaves a record here, newest first."
    return "What you decided, and the runs of agents you own, newest first."


def _narrowed(found: QuerySet[LogRecord], filters: Filters) -> QuerySet[LogRecord]:
    if filters.kind:
        found = found.filter(kind__startswith=f"{filters.kind}.")
    if filters.agent:
        found = found.filter(agent=filters.agent)
    if filters.before:
        found = found.filter(pk__lt=filters.before)
    if filters.q:
        found = found.filter(
            Q(proposal__iexact=filters.q)
            | Q(request__iexact=filters.q)
            | Q(thread__icontains=filters.q)
            | Q(agent__iexact=filters.q)
        )
    return found


def lines(person: Person, rows: Iterable[LogRecord]) -> list[Event]:
    """Records as lines; three queries for names, effects and openness."""
    rows = list(rows)
    leaves = {row.pk: json.loads(bytes(row.leaf)) for row in rows}
    names = names_of(row.actor_id for row in rows if row.actor_kind == "person")
    revisions = _revisions(leaves.values())
    masked = _masked(person, rows)
    return [
        _event(
            row,
            leaves[row.pk],
            names,
            revisions,
            hide=row.request in masked and row.actor_id != person.public_id,
        )
        for row in rows
    ]


def names_of(public_ids: Iterable[str]) -> dict[str, str]:
    """Names by public id; the log itself never holds them."""
    found = Person.objects.filter(public_id__in=set(public_ids))
    return {person.public_id: str(person) for person in found}


def _revisions(
    leaves: Iterable[Mapping[str, Any]],
) -> dict[tuple[str, int], Revision]:
    wanted = {leaf["proposal"] for leaf in leaves if leaf["proposal"]}
    found = Revision.objects.filter(proposal__in=wanted).select_related(
        "tool", "proposal"
    )
    return {(one.proposal_id, one.number): one for one in found}


def _masked(person: Person, rows: Iterable[LogRecord]) -> set[str]:
    """Requests on which other people's names are not shown to this person."""
    wanted = {row.request for row in rows if row.request}
    if permissions.roles_of(person) & permissions.NEVER_DECIDE:
        return set()
    found = ApprovalRequest.objects.filter(pk__in=wanted)
    owned = Q(proposal__barred__contains=[person.public_id])
    return set(found.filter(owned | Q(status__in=OPEN)).values_list("pk", flat=True))


def _event(
    row: LogRecord,
    leaf: Mapping[str, Any],
    names: Mapping[str, str],
    revisions: Mapping[tuple[str, int], Revision],
    *,
    hide: bool,
) -> Event:
    revision = revisions.get((leaf["proposal"], leaf["revision"] or 1))
    position = getattr(row, "position", None)
    return Event(
        id=row.pk,
        url=reverse("reviews:log_record", args=[row.pk]),
        at=row.at,
        said=said(row, leaf, who(row, names, hide=hide)),
        effect=showing.effect(revision) if revision else (),
        tool=revision.tool.name if revision and revision.tool else "",
        agent=row.agent,
        thread=row.thread,
        risk=revision.risk if revision else "",
        request_url=_request_url(row),
        seq=position.seq if position else None,
        kind=row.kind,
        flags=_flags(leaf),
    )


def _request_url(row: LogRecord) -> str:
    if not row.request:
        return ""
    return reverse("reviews:request_detail", args=[row.request])


def who(row: LogRecord, names: Mapping[str, str], *, hide: bool) -> str:
    """The actor's name: a person's may be hidden, the system's is ours."""
    if row.actor_kind == "person":
        return HIDDEN_NAME if hide else names.get(row.actor_id, "Someone")
    return row.actor_id if row.actor_kind == "agent" else "Holdpoint"


def said(row: LogRecord, leaf: Mapping[str, Any], actor: str) -> tuple[Part, ...]:
    """What happened, as a sentence."""
    data = leaf["data"] or {}
    verdict = leaf["verdict"] or ""
    if row.kind == "decision.recorded":
        return sentence("{who} " + VERDICTS.get(verdict, verdict), who=actor)
    if row.kind == "decision.refused":
        tried = TRIED.get(verdict, "to decide")
        return sentence("{who} tried " + tried + "; it had no effect", who=actor)
    pattern = SENTENCES.get(row.kind, row.kind.replace(".", " ").replace("_", " "))
    return sentence(
        pattern,
        who=actor,
        scope=_scope(data.get("scope")),
        key=str(data.get("key", "")),
        version=str(data.get("number", leaf["policy"] or "")),
    )


def _scope(scope: object) -> str:
    return "run" if scope == "thread" else str(scope or "")


def _flags(leaf: Mapping[str, Any]) -> list[str]:
    data = leaf["data"] or {}
    code = data.get("reason_code") or data.get("code") or ""
    return [str(code).replace("_", " ").capitalize()] if code else []

"""Log records as lines of a list or of a request's history, limited to what a person
may read.

Others' votes on open requests are hidden from everybody who may still decide, and an
agent's owner never learns who decided (docs/invariants.md I33).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

from django.db.models import Exists, Func, OuterRef, Q, QuerySet, Subquery, TextField
from django.urls import reverse

from journal.models import LogRecord
from policies.models import Person
from reviews import permissions
from reviews.choices import EXECUTION_SPECS, OPEN, RequestStatus
from reviews.effects import describe
from reviews.effects.wording import WordingPart, build_wording, format_duration
from reviews.models import ApprovalRequest, Decision, Execution, Proposal, Revision
from reviews.presenters import shapes
from reviews.roles import Permission

from . import endings, visibility
from .endings import Ending
from .formatting import round_took
from .log_sentences import (
    HIDDEN_COLLEAGUE,
    SENTENCES,
    describe_record,
    find_answer_code,
    find_other_person,
    format_actor,
    link_agent,
    list_flags,
)
from .log_values import ValueLine, list_owners, list_values

DecisionKey = tuple[str, int, str]  # a request, its version and a public id
# Kinds of records that reveal a vote start with one of these.
VOTE_KIND_PREFIXES = ("decision.",)
# Those that name the person to whom something was done, with one of these.
ABOUT_PEOPLE = ("person.", "authority.", "substitution.", "on_call.", "stop.")


def select_records(person: Person) -> QuerySet[LogRecord]:
    """The log records this person may read.

    Supervisors, administrators and auditors see all; others see their own decisions and
    their own agents' runs. Others' votes on open requests are left out for everybody
    who may still decide, and all of a request that they may review a second time.
    """
    records = LogRecord.objects.select_related("position")
    if not permissions.has_permission(person, Permission.SEE_LOG):
        records = records.filter(_filter_own(person))
    if permissions.never_decides(person):
        return records
    # Their records would give them away.
    canaries = ApprovalRequest.with_canaries.filter(
        canary=True, status=RequestStatus.PENDING
    )
    records = records.exclude(proposal__in=canaries.values("proposal"))
    blind = visibility.select_unanswered_reviews(person).order_by()
    records = records.exclude(proposal__in=blind.values("decision__request__proposal"))
    return records.exclude(filter_others_votes(person))


class _LeafData(Func):
    """A member of the leaf's data as text."""

    template = (
        "(convert_from(%(expressions)s, 'UTF8')::jsonb -> 'data' ->> '%(member)s')"
    )
    output_field = TextField()

    def __init__(self, member: str) -> None:
        super().__init__("leaf", member=member)


def select_about(people: Iterable[Person]) -> QuerySet[LogRecord]:
    """The records of what was done to these people, newest first."""
    ids = [person.public_id for person in people]
    kinds = Q()
    for prefix in ABOUT_PEOPLE:
        kinds |= Q(kind__startswith=prefix)
    records = LogRecord.objects.filter(kinds, proposal="").alias(
        person=_LeafData("person"),
        substitute=_LeafData("substitute"),
        key=_LeafData("key"),
    )
    about = Q(person__in=ids) | Q(substitute__in=ids) | Q(key__in=ids)
    return records.filter(about).order_by("-pk")


def filter_waiting_requests(person: Person) -> Q:
    """The condition for records of requests that this person may be asked to decide,
    except what the person did. Lists leave them out: a list that had the records of a
    request, and none of a canary, would tell them apart. The page of a request shows
    its history, and the record of each event has its own page."""
    if permissions.never_decides(person):
        return Q(pk__in=())
    waiting = ApprovalRequest.objects.filter(
        proposal=OuterRef("proposal"),
        status=RequestStatus.PENDING,
        queue__in=permissions.queues_of(person),
    ).exclude(barred__contains=[person.public_id])
    return Exists(waiting) & ~Q(actor_id=person.public_id)


def _filter_own(person: Person) -> Q:
    decided = Decision.objects.filter(reviewer=person, request=OuterRef("request"))
    own_runs = Proposal.objects.filter(
        pk=OuterRef("proposal"), barred__contains=[person.public_id]
    )
    return Q(actor_id=person.public_id) | Exists(decided) | Exists(own_runs)


def filter_others_votes(person: Person) -> Q:
    """The condition for records that reveal another's vote on an open request."""
    unsettled = ApprovalRequest.objects.filter(pk=OuterRef("request"), status__in=OPEN)
    votes = Q()
    for prefix in VOTE_KIND_PREFIXES:
        votes |= Q(kind__startswith=prefix)
    # A voter's other records, such as taking a hold, would reveal when they voted.
    voted = Decision.objects.filter(
        request=OuterRef("request"), reviewer__public_id=OuterRef("actor_id")
    )
    votes |= Exists(voted) & ~Q(kind__startswith="request.")
    return votes & Exists(unsettled) & ~Q(actor_id=person.public_id)


def filter_hidden_names(person: Person) -> Q:
    """The condition for records whose names are hidden from this person. A search by
    name must exclude them, or a match would reveal the name."""
    if permissions.never_decides(person):
        return Q(pk__in=())
    hidden = ApprovalRequest.objects.filter(pk=OuterRef("request")).filter(
        Q(proposal__barred__contains=[person.public_id]) | Q(status__in=OPEN)
    )
    return Exists(hidden) & ~Q(actor_id=person.public_id)


def select_request_records(
    person: Person, request: ApprovalRequest
) -> QuerySet[LogRecord]:
    """The history of one request, oldest first, as this person may read it."""
    records = LogRecord.objects.select_related("position").filter(
        proposal=request.proposal_id
    )
    if not permissions.never_decides(person):
        records = records.exclude(filter_others_votes(person))
    return records.order_by("pk")


def hides_names(person: Person, request: ApprovalRequest) -> bool:
    """Whether this person reads the request's history without others' names."""
    if permissions.never_decides(person):
        return False
    owned = person.public_id in request.proposal.barred
    return owned or request.status in OPEN


def find_masked_requests(person: Person, rows: Iterable[LogRecord]) -> set[str]:
    """The ids of requests on which this person does not see other people's names."""
    wanted = {row.request for row in rows if row.request}
    if permissions.never_decides(person):
        return set()
    requests = ApprovalRequest.objects.filter(pk__in=wanted)
    owned = Q(proposal__barred__contains=[person.public_id])
    return set(requests.filter(owned | Q(status__in=OPEN)).values_list("pk", flat=True))


def load_people(public_ids: Iterable[str]) -> dict[str, Person]:
    """People by public id; the log itself never stores names."""
    wanted = set(public_ids) - {""}
    return Person.objects.in_bulk(wanted, field_name="public_id") if wanted else {}


def load_names(reader: Person, public_ids: Iterable[str]) -> dict[str, WordingPart]:
    """Names by public id, each with a link for a reader who may open the page of a
    person."""
    links = permissions.has_permission(reader, Permission.SEE_PEOPLE)
    return {
        public_id: WordingPart(
            str(person),
            True,
            reverse("reviews:person", args=[public_id]) if links else "",
        )
        for public_id, person in load_people(public_ids).items()
    }


MOST_HISTORY = 100
# Records of what people and workers did around a proposal, which decided nothing.
SIDE_RECORDS = Q(
    kind__in=(
        "announced.seen",
        "canary.flagged",
        "note.added",
        "outcome.acknowledged",
        "request.view_shown",
        "value.revealed",
    )
)
for _prefix in ("hold.", "delivery."):
    SIDE_RECORDS |= Q(kind__startswith=_prefix)
CANARY_PREFIX, PLANTED_KIND = "canary.", "canary.planted"
DECISION_KIND = "decision.recorded"


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """One record as a line of a request's history."""

    at: datetime
    wording: tuple[WordingPart, ...]
    flags: Sequence[str] = ()
    answer: str = ""  # untrusted: a failure code from a tool or an agent
    ending: Ending | None = None  # what later ended what it says
    kind: str = ""
    actor: str = ""  # only to tell apart whose record it is; never printed

    @property
    def ended(self) -> str:
        """The ending in words: `undone after 4 s`; empty without one."""
        return self.ending.describe(self.at) if self.ending else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine(HistoryLine):
    """One record as a line of the log page."""

    id: int
    url: str
    seq: int | None
    proposal: str
    agent: str
    thread: str
    effect: tuple[shapes.SentencePart, ...] = ()
    tool: str = ""
    risk: str = ""
    request_url: str = ""
    policy: int | None = None
    took: str = ""
    outcome: str = ""
    values: Sequence[ValueLine] = ()


Line = TypeVar("Line", bound=HistoryLine)


def fold_claims(lines: Iterable[Line]) -> list[Line]:
    """One line for claims of one person that follow each other, with the time of the
    first and the end of the last: `claimed the request 3 times`."""
    folded: list[Line] = []
    for claimant, batch in groupby(lines, key=_find_claimant):
        rows: list[Line] = list(batch)
        taken: list[Line] = [line for line in rows if line.kind == "hold.taken"]
        if not claimant or len(taken) < 2:
            folded += rows
            continue
        wording = (*taken[0].wording, WordingPart(f" {len(taken)} times"))
        folded += rows[: rows.index(taken[0])]
        folded.append(replace(taken[0], wording=wording, ending=taken[-1].ending))
    return folded


def _find_claimant(line: HistoryLine) -> str:
    return line.actor if line.kind in {"hold.taken", "hold.released"} else ""


@dataclass(frozen=True)
class _LineContext:
    """What the lines need beside their records, each loaded once for all."""

    names: Mapping[str, WordingPart]
    revisions: Mapping[tuple[str, int], Revision]
    masked: set[str]
    took: Mapping[tuple[str, int, str], int | None]
    endings: Mapping[int, Ending]  # by record


def build_log_lines(person: Person, rows: Iterable[LogRecord]) -> list[LogLine]:
    """Records as lines of the log page, in at most eight queries however many there
    are, and one for each kind of thing without a proposal that they name."""
    rows = list(rows)
    decisions = _load_decisions(rows)
    leaves = {
        row.pk: describe.present_or_report(row, partial(_load_leaf, row), _NoLeaf)
        for row in rows
    }
    around = _LineContext(
        names=load_names(person, _list_named_people(rows, leaves)),
        revisions=_load_revisions(leaves.values()),
        masked=find_masked_requests(person, rows),
        took={key: decision.took_ms for key, decision in decisions.items()},
        endings=_list_endings(person, rows, leaves, decisions),
    )
    return [
        describe.present_or_report(
            row,
            partial(_build_log_line, person, row, leaves[row.pk], around),
            partial(_build_unreadable_line, row),
        )
        for row in rows
    ]


def build_history(person: Person, request: ApprovalRequest) -> list[HistoryLine]:
    """A request's first `MOST_HISTORY` records, in at most seven queries."""
    rows = list(select_request_records(person, request)[:MOST_HISTORY])
    leaves = {row.pk: json.loads(bytes(row.leaf)) for row in rows}
    endings = _list_endings(person, rows, leaves, _load_decisions(rows))
    names = load_names(person, _list_named_people(rows, leaves))
    hides = hides_names(person, request)
    history: list[HistoryLine] = []
    for row in rows:
        leaf, ending = leaves[row.pk], endings.get(row.pk)
        hide = hides and not is_party(person, row, leaf)
        actor = format_actor(row, names, hide=hide)
        if row.kind == PLANTED_KIND and request.status == RequestStatus.PENDING:
            history += _build_disguised_lines(row, request)
            continue
        other = _format_other(leaf, names, hide=hide)
        line = describe_record(row, leaf, actor, other)
        flags, answer = list_flags(leaf), find_answer_code(leaf)
        history.append(
            HistoryLine(row.at, line, flags, answer, ending, row.kind, row.actor_id)
        )
    return fold_claims(history)


def _list_named_people(
    rows: Iterable[LogRecord], leaves: Mapping[int, Mapping[str, Any]]
) -> Iterator[str]:
    for row in rows:
        if row.actor_kind == "person":
            yield row.actor_id
        if other := find_other_person(leaves[row.pk]):
            yield other
        yield from list_owners(leaves[row.pk])


def is_party(person: Person, row: LogRecord, leaf: Mapping[str, Any]) -> bool:
    """Whether the record is about this person, who then knows whom else it names."""
    return person.public_id in {row.actor_id, find_other_person(leaf)}


def _format_other(
    leaf: Mapping[str, Any], names: Mapping[str, WordingPart], *, hide: bool
) -> WordingPart:
    known = None if hide else names.get(find_other_person(leaf))
    return known or HIDDEN_COLLEAGUE


def _build_disguised_lines(
    row: LogRecord, request: ApprovalRequest
) -> Iterator[HistoryLine]:
    """What the history of an open canary says in place of its first record: the same
    as that of any request."""
    for kind in ("proposal.submitted", "request.opened"):
        wording = build_wording(SENTENCES[kind], who=link_agent(request.agent))
        yield HistoryLine(row.at, wording)


def _load_revisions(
    leaves: Iterable[Mapping[str, Any]],
) -> dict[tuple[str, int], Revision]:
    wanted = {leaf["proposal"] for leaf in leaves if leaf["proposal"]}
    ran = Execution.objects.filter(proposal=OuterRef("proposal")).values("status")
    revisions = Revision.objects.filter(proposal__in=wanted).annotate(ran=Subquery(ran))
    return {
        (revision.proposal_id, revision.number): revision
        for revision in revisions.select_related("tool", "proposal")
    }


def _load_decisions(rows: Iterable[LogRecord]) -> dict[DecisionKey, Decision]:
    """The decisions that these records are about, by request, version and person."""
    wanted = {row.request for row in rows if row.kind == DECISION_KIND}
    if not wanted:
        return {}
    decisions = Decision.objects.filter(request__in=wanted).select_related("reviewer")
    return {
        (decision.request_id, decision.version, decision.reviewer.public_id): decision
        for decision in decisions
    }


def _list_endings(
    person: Person,
    rows: Sequence[LogRecord],
    leaves: Mapping[int, Mapping[str, Any]],
    decisions: Mapping[DecisionKey, Decision],
) -> dict[int, Ending]:
    by_record = endings.list_record_endings(select_records(person), rows)
    by_decision = endings.list_decision_endings(decisions.values())
    for row in rows:
        decision = decisions.get(_build_decision_key(row, leaves[row.pk]))
        if row.kind == DECISION_KIND and decision and decision.pk in by_decision:
            by_record[row.pk] = by_decision[decision.pk]
    return by_record


def _build_decision_key(row: LogRecord, leaf: Mapping[str, Any]) -> DecisionKey:
    return row.request, leaf["version"], row.actor_id


def build_record_url(row: LogRecord) -> str:
    """The address of a record's page: by its number in the log, or by its key until the
    sequencer has numbered it."""
    position = getattr(row, "position", None)
    if position is None:
        return reverse("reviews:log_new", args=[row.pk])
    return reverse("reviews:log_record", args=[position.seq])


def _format_outcome(revision: Revision | None) -> str:
    status = getattr(revision, "ran", None)
    return EXECUTION_SPECS[status].label.lower() if status else ""


class _NoLeaf(dict[str, Any]):
    """In place of the content of a record that cannot be read: it has no member."""

    def __missing__(self, name: str) -> None:
        return None


def _load_leaf(row: LogRecord) -> Mapping[str, Any]:
    leaf: Mapping[str, Any] = json.loads(bytes(row.leaf))
    return leaf


def _build_unreadable_line(row: LogRecord) -> LogLine:
    """The line of a record of which something cannot be read."""
    position = getattr(row, "position", None)
    return LogLine(
        row.at,
        (WordingPart("This record cannot be read"),),
        id=row.pk,
        url=build_record_url(row),
        seq=position.seq if position else None,
        kind=row.kind,
        proposal=row.proposal,
        agent=row.agent,
        thread=row.thread,
    )


def _build_log_line(
    person: Person, row: LogRecord, leaf: Mapping[str, Any], around: _LineContext
) -> LogLine:
    line = _build_unreadable_line(row)
    if isinstance(leaf, _NoLeaf):
        return line
    revision = around.revisions.get((leaf["proposal"], leaf["revision"] or 1))
    hide = row.request in around.masked and not is_party(person, row, leaf)
    actor = format_actor(row, around.names, hide=hide)
    other = _format_other(leaf, around.names, hide=hide)
    # Only its reviewer may open the page of a canary.
    linked = row.request if not row.kind.startswith(CANARY_PREFIX) else ""
    return replace(
        line,
        wording=describe_record(row, leaf, actor, other),
        effect=describe.load_brief(revision).effect if revision else (),
        tool=revision.tool.name if revision and revision.tool else "",
        risk=revision.risk if revision else "",
        request_url=reverse("reviews:request_detail", args=[linked]) if linked else "",
        flags=list_flags(leaf),
        policy=leaf["policy"] or (revision.policy_number if revision else None),
        took=_format_decision_time(row, leaf, around),
        outcome=_format_outcome(revision),
        ending=around.endings.get(row.pk),
        answer=find_answer_code(leaf),
        actor=row.actor_id,
        values=list_values(leaf, around.names),
    )


def _format_decision_time(
    row: LogRecord, leaf: Mapping[str, Any], around: _LineContext
) -> str:
    """How long a decision took; empty for other records, even of the same person."""
    if row.kind != DECISION_KIND:
        return ""
    took_ms = around.took.get(_build_decision_key(row, leaf))
    if took_ms is None:
        return ""
    return format_duration(round_took(took_ms))

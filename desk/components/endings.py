"""What ended later what a list shows as having happened: an approval that was undone, a
stop that was lifted."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery

from journal.models import LogRecord
from policies.models import StandingGrant
from reviews.choices import (
    UNGRANTED,
    ExecutionStatus,
    GrantStatus,
    RequestStatus,
    Verdict,
)
from reviews.effects.wording import format_duration
from reviews.models import (
    Alarm,
    ApprovalRequest,
    Decision,
    Execution,
    Grant,
    Incident,
    RequestVersion,
    Stop,
)


@dataclass(frozen=True, slots=True)
class Ending:
    """What ended later what a row shows, and when."""

    word: str  # `undone`
    at: datetime

    def describe(self, begun: datetime) -> str:
        """`undone after 4 s`."""
        return f"{self.word} after {format_duration(self.at - begun)}"


# By the cause of the version that no longer counts a vote.
_VOTE_ENDINGS = {
    "recalled": "undone",
    "revoked": "revoked",
    "revised": "replaced by a revision",
    "modified": "replaced by an edit",
    "escalated": "asked again after an escalation",
    "verifier": "asked again after an escalation",
    "returned": "returned",
    "moved": "asked again in another queue",
}
_PERMIT_ENDINGS = {
    GrantStatus.REVOKED: "permit revoked",
    GrantStatus.EXPIRED: "permit expired",
}


def list_decision_endings(decisions: Iterable[Decision]) -> dict[int, Ending]:
    """What ended each of these decisions, by id; two queries. A decision that stands,
    and a rejection, which nothing undoes, are left out."""
    standing = [
        decision for decision in decisions if decision.verdict != Verdict.REJECT
    ]
    ids = {decision.request_id for decision in standing}
    later: dict[str, list[RequestVersion]] = {pk: [] for pk in ids}
    versions = (
        RequestVersion.objects.filter(request__in=ids)
        .order_by("number")
        .only("request", "cause", "carried", "escalated_by", "created_at")
    )
    for version in versions if ids else ():
        later[version.request_id].append(version)
    ends = {row.pk: row for row in _select_ends(ids)} if ids else {}
    endings = {
        decision.pk: _find_vote_ending(decision, later[decision.request_id])
        or _find_request_ending(ends.get(decision.request_id))
        for decision in standing
    }
    return {pk: ending for pk, ending in endings.items() if ending is not None}


def _select_ends(ids: Collection[str]) -> QuerySet[ApprovalRequest]:
    here = {"proposal": OuterRef("proposal")}
    permit = Grant.objects.filter(**here).order_by("-issued_at")
    refused = Execution.objects.filter(status=ExecutionStatus.REFUSED, **here)
    undone = Execution.objects.filter(
        status=ExecutionStatus.SUCCEEDED,
        proposal__reverses__execution__proposal=OuterRef("proposal"),
    )
    return ApprovalRequest.objects.filter(pk__in=ids).annotate(
        permit=Subquery(permit.values("status")[:1]),
        permit_until=Subquery(permit.values("expires_at")[:1]),
        refused_at=Subquery(refused.values("finished_at")[:1]),
        reversed_at=Subquery(undone.values("finished_at")[:1]),
    )


def _find_vote_ending(
    decision: Decision, versions: Iterable[RequestVersion]
) -> Ending | None:
    """The first later version that does not keep the vote. An edit that was no vote
    itself ends with the next edit or revision."""
    person = decision.reviewer.public_id
    escalates = decision.verdict == Verdict.ESCALATE
    for version in versions:
        voters = version.escalated_by if escalates else version.carried
        if version.created_at <= decision.at or person in voters:
            continue
        if decision.counts or escalates or version.cause in ("revised", "modified"):
            return Ending(_VOTE_ENDINGS.get(version.cause, "ended"), version.created_at)
    return None


def _find_request_ending(row: Any) -> Ending | None:
    """How the request of a vote that stood ended without its effect."""
    if row is None or row.settled_at is None:
        return None
    if row.status == RequestStatus.REJECTED:
        return Ending("overruled by a rejection", row.settled_at)
    if row.status in UNGRANTED:
        return Ending(f"request {row.status}", row.settled_at)
    if row.reversed_at is not None:
        return Ending("reversed", row.reversed_at)
    if word := _PERMIT_ENDINGS.get(row.permit):
        return Ending(word, row.refused_at or row.permit_until)
    return None


# What ends what a record began, by the kinds of both; both are of one proposal.
_HOLD_ENDINGS = {
    "hold.released": "released",
    "hold.lapsed": "expired",
    "hold.broken": "ended by another person",
    "hold.handed_over": "handed over",
}
_RECORD_ENDINGS: dict[str, dict[str, str]] = {
    "hold.offered": {
        "hold.handed_over": "accepted",
        "hold.declined": "declined",
        "hold.lapsed": "not answered",
        "hold.offer_withdrawn": "withdrawn",
    },
    "hold.taken": _HOLD_ENDINGS,
    "hold.handed_over": _HOLD_ENDINGS,
    "request.recallable": {
        "request.recalled": "undone",
        "request.revoked": "revoked",
        "request.revised": "replaced by a revision",
        "request.withdrawn": "request withdrawn",
        "request.rejected": "overruled by a rejection",
    },
    "request.authorized": {
        "grant.revoked": "permit revoked",
        "grant.expired": "permit expired",
    },
    "request.escalated": {"request.returned": "returned"},
    "request.sent_back": {"request.revised": "revised"},
    "request.modified": {
        "request.modified": "replaced by an edit",
        "request.revised": "replaced by a revision",
    },
    "grant.issued": {"grant.revoked": "revoked", "grant.expired": "expired"},
    "execution.unknown": {"execution.settled": "resolved"},
    "batch.decided": {"batch.recalled": "undone"},
}
_ENDING_KINDS = {kind for ended in _RECORD_ENDINGS.values() for kind in ended}


def list_record_endings(
    records: QuerySet[LogRecord], rows: Iterable[LogRecord]
) -> dict[int, Ending]:
    """What ended what these records began, by id. `records` are those that the reader
    may see. One query for records of proposals, one for each other kind of thing that a
    row names, and one for what a person or an agent was given."""
    rows = list(rows)
    endings = _list_thing_endings(rows) | _list_given_endings(records, rows)
    begun = [row for row in rows if row.kind in _RECORD_ENDINGS and row.proposal]
    ended: dict[str, list[LogRecord]] = {row.proposal: [] for row in begun}
    if begun:
        ends = records.filter(proposal__in=set(ended), kind__in=_ENDING_KINDS)
        for row in ends.order_by("pk"):
            ended[row.proposal].append(row)
    for row in begun:
        words = _RECORD_ENDINGS[row.kind]
        later = (
            end for end in ended[row.proposal] if end.pk > row.pk and end.kind in words
        )
        if (end := next(later, None)) is not None:
            endings[row.pk] = Ending(words[end.kind], end.at)
    for row, at in _list_reversals(rows):
        endings[row.pk] = Ending("reversed", at)
    return endings


def _list_reversals(rows: Iterable[LogRecord]) -> list[tuple[LogRecord, datetime]]:
    ran = [row for row in rows if row.kind == "execution.succeeded"]
    if not ran:
        return []
    undone = Execution.objects.filter(
        status=ExecutionStatus.SUCCEEDED,
        proposal__reverses__execution__proposal__in={row.proposal for row in ran},
    )
    of = F("proposal__reverses__execution__proposal")
    at = dict(undone.values_list(of, "finished_at"))
    return [(row, at[row.proposal]) for row in ran if row.proposal in at]


def _list_thing_endings(rows: Iterable[LogRecord]) -> dict[int, Ending]:
    """Endings of what has a row of its own and no proposal."""
    return {
        pk: Ending(word, at)
        for kind, (word, find_ends) in _THINGS.items()
        if (begun := [row for row in rows if row.kind == kind])
        for pk, at in find_ends(begun).items()
        if at is not None
    }


_Key = Callable[[LogRecord], tuple[object, ...] | None]


def _by(*names: str) -> _Key:
    """What a record is about, by members of its data; None where one is missing."""

    def identify(row: LogRecord) -> tuple[object, ...] | None:
        members = tuple(row.data.get(name) for name in names)
        return None if None in members else members

    return identify


# What people and agents are given, and what takes it from them: the kinds of both
# records, the word for the end, and what both are about.
_GIVEN: list[tuple[str, str, str, _Key, _Key]] = [
    (begun, ended, word, key, key)
    for begun, ended, word, key in (
        ("agent.key_issued", "agent.key_revoked", "revoked", _by("prefix")),
        ("person.token_minted", "person.token_revoked", "revoked", _by("prefix")),
        ("person.admitted", "person.dismissed", "removed", _by("person", "queue")),
        ("person.added", "person.changed", "role changed", _by("person")),
        ("person.added", "person.deactivated", "deactivated", _by("person")),
        ("person.changed", "person.changed", "role changed", _by("person")),
        ("person.deactivated", "person.reactivated", "reactivated", _by("person")),
        ("person.reactivated", "person.deactivated", "deactivated", _by("person")),
        (
            "on_call.planned",
            "on_call.ended",
            "ended",
            _by("queue", "person", "begins_at"),
        ),
        ("endpoint.switched_off", "endpoint.switched_on", "enabled", _by("endpoint")),
        ("endpoint.switched_on", "endpoint.switched_off", "disabled", _by("endpoint")),
        (
            "policy.activated",
            "policy.retired",
            "retired",
            lambda row: (json.loads(bytes(row.leaf))["policy"],),
        ),
    )
]
_GIVEN += [
    ("person.token_minted", kind, "revoked", lambda row: (row.actor_id,), _by("person"))
    for kind in ("person.deactivated", "person.password_set")
]
_ROLE_CHANGE = "person.changed"  # ends a role where it gives another one


def _list_given_endings(
    records: QuerySet[LogRecord], rows: Sequence[LogRecord]
) -> dict[int, Ending]:
    begun = [row for row in rows if any(row.kind == rule[0] for rule in _GIVEN)]
    kinds = {rule[1] for rule in _GIVEN if any(row.kind == rule[0] for row in begun)}
    if not kinds:
        return {}
    since = min(row.pk for row in begun)
    # None is about a proposal: the index leads past those of all requests.
    ends = records.filter(proposal="", kind__in=kinds, pk__gt=since)
    later = [
        row
        for row in ends.order_by("pk")
        if row.kind != _ROLE_CHANGE or "role" in row.data
    ]
    endings = {
        row.pk: _find_given_ending(row, later)
        for row in begun
        if row.kind != _ROLE_CHANGE or "role" in row.data
    }
    return {pk: ending for pk, ending in endings.items() if ending is not None}


def _find_given_ending(row: LogRecord, later: Iterable[LogRecord]) -> Ending | None:
    rules = [rule for rule in _GIVEN if rule[0] == row.kind]
    for end in later:
        for _, kind, word, identify, identify_ended in rules:
            fits = end.pk > row.pk and end.kind == kind
            if fits and identify_ended(end) == identify(row):
                return Ending(word, end.at)
    return None


_Ends = dict[int, datetime | None]  # by record


def _find_stop_ends(rows: Sequence[LogRecord]) -> _Ends:
    stops = Stop.objects.filter(at__in=[row.at for row in rows])
    ends = {(stop.scope, stop.key, stop.at): stop.lifted_at for stop in stops}
    return {
        row.pk: ends.get((row.data["scope"], row.data["key"], row.at)) for row in rows
    }


def _find_alarm_ends(rows: Sequence[LogRecord]) -> _Ends:
    alarms = Alarm.objects.filter(opened_at__in=[row.at for row in rows])
    ends: dict[Any, datetime | None] = {
        (alarm.kind, alarm.opened_at): alarm.closed_at for alarm in alarms
    }
    return {row.pk: ends.get((row.data.get("code"), row.at)) for row in rows}


def _find_ends_by_id(
    model: type[Incident | StandingGrant],
    name: str,
    ended: str,
    rows: Sequence[LogRecord],
) -> _Ends:
    ids: set[Any] = {row.data.get(name) for row in rows}
    ends = dict(model.objects.filter(pk__in=ids).values_list("pk", ended))
    return {row.pk: ends.get(row.data.get(name)) for row in rows}


# By the kind of record: the word for the end, and when what each record began ended.
_THINGS: dict[str, tuple[str, Callable[[Sequence[LogRecord]], _Ends]]] = {
    "stop.raised": ("resumed", _find_stop_ends),
    "incident.declared": (
        "ended",
        partial(_find_ends_by_id, Incident, "incident", "ended_at"),
    ),
    "standing_grant.issued": (
        "revoked",
        partial(_find_ends_by_id, StandingGrant, "standing_grant", "revoked_at"),
    ),
    "alarm.raised": ("resolved", _find_alarm_ends),
}

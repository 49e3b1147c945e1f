"""Decide a batch: one verdict on every item of a list, or on none (gate.md section 6).

The list must be exactly the one that the person saw: the same items, in the same order,
each unchanged. Every item passes the checks of a single decision. The verifiers of all
items are called first, before any lock is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db import transaction

from journal import clock, failpoints, log, restore_epochs
from journal.errors import (
    BatchChanged,
    Decided,
    DomainError,
    FieldError,
    Invalid,
    NotFound,
    Policy,
    VerifierRefused,
    at,
)
from policies import tools
from policies.models import Person
from reviews import locks, transitions
from reviews.choices import BatchStatus, Verdict
from reviews.decisions import checks, verdicts
from reviews.decisions import preflight as alone
from reviews.decisions.preflight import Outside
from reviews.decisions.submission import Said, Sight
from reviews.decisions.votes import Vote
from reviews.governance import readings
from reviews.models import Batch, BatchItem
from reviews.stops import incidents

from . import membership, records, similarity
from .membership import Member


@dataclass(frozen=True, slots=True)
class SaidOfMany:
    """One verdict on an exact ordered list. `left_out` names the members that the
    person saw and left out: a member in neither list joined after the page was made.
    """

    batch_id: str
    person: Person
    verdict: Verdict
    digest: str
    items: Sequence[str]
    left_out: Sequence[str] = ()
    reason_code: str = ""
    reason: str = ""
    stop_at_failure: bool = True
    # `BatchMember.mark` of each item as the page showed it; tells which items changed.
    marks: Mapping[str, str] = field(default_factory=dict)
    samples: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seen: Sight | None = None
    took_ms: int | None = None  # from the page to the commit; None without a page
    flags: tuple[str, ...] = ()
    by: str = "api"  # or "page"
    # The page's own objection, raised last, when every other check has passed.
    objection: DomainError | None = None

    @property
    def actor(self) -> log.Actor:
        return log.Actor("person", self.person.public_id)


def said_of(said: SaidOfMany, member: Member) -> Said:
    """The verdict on one item in its current state. The batch digest proves that the
    person saw this state."""
    return Said(
        request_id=member.id,
        person=said.person,
        verdict=said.verdict,
        version=member.request.version,
        action_hash=member.request.action_hash,
        reason_code=said.reason_code,
        reason=said.reason,
        batch={
            "batch": said.batch_id,
            "digest": said.digest,
            "position": member.item.position,
            "by": said.by,
            "view": said.seen.digest if said.seen else "",
        },
        took_ms=said.took_ms,
        reading=member.reading.pk if member.reading else readings.OWN,
    )


@contextmanager
def naming(member: Member) -> Iterator[None]:
    """Add the item to the `errors` of any DomainError raised in the block."""
    try:
        yield
    except DomainError as error:
        error.errors.append(at(member.id, error.detail))
        raise


MOST = 50  # items of one decision


def check(said: SaidOfMany, members: Sequence[Member]) -> None:
    """Check that the list is the one the person saw: the same items, in the same order,
    each unchanged. Raises BatchChanged, Invalid."""
    if not said.items or len(said.items) > MOST:
        raise Invalid(f"Choose 1 to {MOST} items. Nothing was recorded.")
    changes = _changes(said.items, members, said.marks, left_out=said.left_out)
    staying = {member.id: member for member in members if not member.gone}
    ordered = [pk for pk in staying if pk in set(said.items)]
    if not changes and ordered != list(said.items):
        raise Invalid("Name each item once, in the order of the batch.")
    now = similarity.digest(staying[pk].entry for pk in ordered)
    if changes or now != said.digest:
        raise BatchChanged(_changed_said(len(changes), len(said.items)), errors=changes)


def since(marks: Mapping[str, str], members: Sequence[Member]) -> list[FieldError]:
    """List what changed in the rows of a page, ticked or not. `marks` holds each row's
    `BatchMember.mark` when the page was made."""
    return _changes(list(marks), members, marks)


def _changes(
    items: Sequence[str],
    members: Sequence[Member],
    marks: Mapping[str, str],
    left_out: Sequence[str] = (),
) -> list[FieldError]:
    known, seen = {member.id for member in members}, set(items)
    found = [
        at(pk, "It is no longer in this batch.") for pk in items if pk not in known
    ]
    for member in members:
        if member.id in seen:
            why = member.gone or _moved(member, marks.get(member.id))
        elif member.gone or member.id in left_out:
            continue
        else:
            why = "It joined after this page was made."
        if why:
            found.append(at(member.id, why))
    return found


def _moved(member: Member, mark: str | None) -> str:
    if mark is None or mark == member.mark:
        return ""
    if member.changed:
        return f"The agent replaced it at {member.version.created_at:%H:%M:%S} UTC."
    return "The record changed after this page was made."


def _changed_said(changed: int, of: int) -> str:
    if not changed:
        return (
            "This batch is not as it was when you opened it. None of its items was"
            " decided. Look at it again, then confirm."
        )
    return (
        f"{changed} of {of} items changed or expired since you opened this batch. None"
        f" of the {of} was decided. See the {changed}, then confirm again."
    )


def check_total(batch: Batch, chosen: Sequence[Member]) -> None:
    """Check that the items together stay within the tool's limit for one batch. Raises
    Policy."""
    definition = tools.definition(batch.tool)
    total = similarity.total_of(member.version for member in chosen)
    if not similarity.too_much(total, definition):
        return
    most = definition.batchable.total if definition.batchable else None
    limit = f"{most.amount} {most.currency}" if most else "the ceiling"
    raise Policy(
        f"Together this is above {limit}, the most for one batch. None was decided."
        " Leave some out.",
        errors=[at("items", f"at most {limit} in one batch")],
    )


Outsides = Mapping[str, Outside]


def look(said: SaidOfMany) -> Outsides:
    """Call the verifiers of every named item, before any lock is taken.

    Returns the results by request id; empty unless this approves a batch of a tool with
    verifiers. Raises Invalid, NotFound, VerifierRefused and what
    `preflight.run_preflight` raises.
    """
    if said.verdict not in verdicts.VERDICTS:
        raise Invalid(
            "A batch is approved, rejected or escalated. Nothing was recorded."
        )
    batch = Batch.objects.select_related("tool").filter(pk=said.batch_id).first()
    if batch is None:
        raise NotFound
    asks = said.verdict is Verdict.APPROVE and tools.definition(batch.tool).verifiers
    if not asks:
        return {}
    members = membership.load(batch, now=clock.now())
    named = [one for one in members if one.id in said.items and not one.gone]
    return {one.id: _asked(said, one) for one in named}


def _asked(said: SaidOfMany, member: Member) -> Outside:
    with naming(member):
        found = alone.look(said_of(said, member))
        if found.raised:
            raise VerifierRefused(
                "A verifier asks for more authority for one of these, so none was"
                " decided. Leave it out and decide it alone."
            )
    return found


KNOWN = re.compile(r"r-[a-z0-9]{1,38}")  # the only paths that a log record may contain


def decide(said: SaidOfMany) -> Batch:
    """Record one verdict on every item of the list, or on none.

    Raises BatchChanged with what changed, Decided, NotFound, Invalid, Policy above the
    tool's ceiling, and for any single item what `decisions.decide.decide_request`
    raises; `errors` then names the item. A refusal is logged in a separate transaction.
    Locks: the batch, then its requests by id.
    """
    try:
        return _record(said, look(said))
    except DomainError as error:
        _log_refused(said, error)
        raise


@transaction.atomic(durable=True)
def _record(said: SaidOfMany, asked: Outsides) -> Batch:
    restore_epochs.check()
    batch = locks.batch(said.batch_id)
    if batch.status not in (BatchStatus.FORMING, BatchStatus.OPEN):
        raise _over(batch)
    inside = batch.items.filter(left_at__isnull=True)
    requests = locks.approval_requests(inside.values_list("request", flat=True))
    now = clock.now()
    for request in requests.values():
        incidents.catch_up(request, now)
    members = membership.load(batch, now=now, requests=requests)
    check(said, members)
    # Reload the person: their role may have been revoked during the wait for the lock.
    said = replace(said, person=Person.objects.get(pk=said.person.pk))
    chosen = [member for member in members if member.id in set(said.items)]
    check_total(batch, chosen)
    found = _examined(said, chosen, asked, now)
    if said.objection is not None:
        raise said.objection  # rolls back everything above
    _close(batch, said, members, now)
    verdicts.VERDICTS[said.verdict](found)
    failpoints.point("batch_uncommitted", batch.pk)
    return batch


def _over(batch: Batch) -> DomainError:
    if batch.status == BatchStatus.DECIDED:
        return Decided("This batch has been decided. Your decision was not recorded.")
    return BatchChanged(
        "This batch was dissolved: too few of its items are left. None was decided."
        " Decide them alone."
    )


def _examined(
    said: SaidOfMany, chosen: Sequence[Member], asked: Outsides, now: datetime
) -> list[Vote]:
    """Check each item as a single decision on it would be checked, and find the step
    that an approval fills. The facts for all items are loaded once."""
    each = {member.id: _said_of(said, member) for member in chosen}
    requests = {member.id: member.request for member in chosen}
    known = checks.look(list(each.values()), requests)
    votes = []
    for member in chosen:
        one, outside = each[member.id], asked.get(member.id, Outside())
        with naming(member):
            case = checks.examine(one, member.request, outside, known, now=now)
            votes.append(checks.vote(case))
    return votes


def _said_of(said: SaidOfMany, member: Member) -> Said:
    return replace(
        said_of(said, member),
        flags=said.flags,
        check=said.samples.get(member.id, {}),
        # The person read one page for all items; its copy is kept with the first.
        seen=said.seen if member.id == said.items[0] else None,
    )


def _close(
    batch: Batch, said: SaidOfMany, members: Sequence[Member], now: datetime
) -> None:
    """Mark the batch as decided; members not in the list return to the queue."""
    leaving = [member for member in members if member.id not in set(said.items)]
    rows = BatchItem.objects.filter(pk__in=[one.item.pk for one in leaving])
    rows.update(left_at=now)
    transitions.batch.apply(
        batch,
        "decide",
        actor=said.actor,
        now=now,
        changes={
            "settled_at": now,
            "digest": said.digest,
            "stop_at_failure": said.stop_at_failure,
        },
        verdict=said.verdict,
        data={
            "batch": batch.pk,
            "digest": said.digest,
            "requests": list(said.items),
            "left_out": [member.id for member in leaving],
            "opened": dict(said.samples),
            "reason_code": said.reason_code,
            **({"view": said.seen.digest} if said.seen else {}),
        },
        private={"reason": said.reason},
    )


@transaction.atomic(durable=True)
def _log_refused(said: SaidOfMany, error: DomainError) -> None:
    """Log a refused verdict in a transaction of its own [I8, I30]."""
    batch = Batch.objects.filter(pk=said.batch_id).first()
    if batch is None:
        return
    paths = [one["path"] for one in error.errors]
    records.note(
        batch,
        "batch.refused",
        said.actor,
        clock.now(),
        {
            "code": error.code,
            "seen": said.digest[:80],
            "requests": [pk for pk in paths if KNOWN.fullmatch(pk)],
        },
        verdict=said.verdict,
    )

"""What people do with a batch: decide exactly the ordered list that they saw, or none
of it; recall it; and let what is left of it run (gate.md section 6)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from journal import clock, faults, log, outbox
from journal.clock import ClockTimestamp
from journal.errors import (
    BatchChanged,
    Conflict,
    Decided,
    DomainError,
    FieldError,
    Invalid,
    NotFound,
    Policy,
    Running,
    VerifierRefused,
    at,
)
from policies import facts, tools
from policies.models import Person

from . import (
    alike,
    cases,
    decisions,
    locks,
    membership,
    permissions,
    recalls,
    settlements,
    state_readings,
    transitions,
)
from .cases import Case, Said
from .choices import BatchStatus, ExecutionStatus, RequestStatus, Verdict
from .decisions import Outside
from .membership import Member
from .models import ApprovalRequest, Batch, BatchItem, Execution
from .seen import Sight

MOST = 50  # items of one decision
KNOWN = re.compile(r"r-[a-z0-9]{1,38}")  # what may stand in a record in plain
VERDICTS = (Verdict.APPROVE, Verdict.REJECT)
Outsides = Mapping[str, Outside]


@dataclass(frozen=True, slots=True)
class SaidOfMany:
    """One verdict on an exact ordered list. `left_out` are the members that the person
    saw and left out: whoever is in neither list came after the page was made."""

    batch_id: str
    person: Person
    verdict: Verdict
    digest: str
    items: Sequence[str]
    left_out: Sequence[str] = ()
    reason_code: str = ""
    reason: str = ""
    stop_at_failure: bool = True
    # What each item was on the page, where the page says so: names what has changed.
    marks: Mapping[str, str] = field(default_factory=dict)
    samples: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seen: Sight | None = None
    flags: tuple[str, ...] = ()
    by: str = "api"  # or "page"
    # What the page itself has against it: raised when nothing else is wrong.
    objection: DomainError | None = None

    @property
    def actor(self) -> log.Actor:
        return log.Actor("person", self.person.public_id)


def decide(said: SaidOfMany) -> Batch:
    """Record one verdict on every item of the list, or on none.

    Raises BatchChanged with what changed, Decided, NotFound, Invalid, Policy above the
    tool's ceiling, and for any single item what `decisions.decide` raises; `errors`
    then names the item. A refusal is logged in a transaction of its own.
    """
    try:
        return _record(said, _look_outside(said))
    except DomainError as error:
        _log_refused(said, error)
        raise


def _look_outside(said: SaidOfMany) -> Outsides:
    """Every item's verifiers, before any lock is taken."""
    if said.verdict not in VERDICTS:
        raise Invalid("A batch is approved or rejected. Nothing was recorded.")
    batch = Batch.objects.select_related("tool").filter(pk=said.batch_id).first()
    if batch is None:
        raise NotFound
    asks = said.verdict is Verdict.APPROVE and tools.definition(batch.tool).verifiers
    if not asks:
        return {}
    members = membership.load(batch, now=clock.now())
    named = [one for one in members if one.id in said.items and not one.gone]
    return {one.id: _asked_outside(said, one) for one in named}


def _asked_outside(said: SaidOfMany, member: Member) -> Outside:
    with _naming(member):
        found = decisions.look_outside(_said_of(said, member))
        if found.raised:
            raise VerifierRefused(
                "A verifier asks for more authority for one of these, so none was"
                " decided. Leave it out and decide it alone."
            )
    return found


class _naming:
    """Says which item a refusal is about."""

    def __init__(self, member: Member) -> None:
        self.member = member

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, DomainError):
            error.errors.append(at(self.member.id, error.detail))


def _said_of(said: SaidOfMany, member: Member) -> Said:
    """The verdict on one item: on what it is now, which the digest says was seen."""
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
        },
        reading=member.reading.pk if member.reading else state_readings.OWN,
    )


@transaction.atomic(durable=True)
def _record(said: SaidOfMany, outside: Outsides) -> Batch:
    batch = locks.batch(said.batch_id)
    if batch.status not in (BatchStatus.FORMING, BatchStatus.OPEN):
        raise _over(batch)
    inside = batch.items.filter(left_at__isnull=True)
    requests = locks.approval_requests(inside.values_list("request", flat=True))
    now = clock.now()
    members = membership.load(batch, now=now, requests=requests)
    _check_list(said, members)
    # Read anew: an authority taken away while we waited is gone.
    said = replace(said, person=Person.objects.get(pk=said.person.pk))
    chosen = [member for member in members if member.id in set(said.items)]
    _check_total(batch, chosen)
    found = [
        _examined(said, one, outside.get(one.id, Outside()), now) for one in chosen
    ]
    if said.objection is not None:
        raise said.objection  # and all of the above is rolled back
    _close(batch, said, members, now)
    VERBS[said.verdict](found, now)
    faults.point("batch_uncommitted", batch.pk)
    return batch


def _over(batch: Batch) -> DomainError:
    if batch.status == BatchStatus.DECIDED:
        return Decided("This batch has been decided. Your decision was not recorded.")
    return BatchChanged(
        "This batch was dissolved: too few of its items are left. None was decided."
        " Decide them alone."
    )


def _check_list(said: SaidOfMany, members: Sequence[Member]) -> None:
    """That the list is what the person saw: the same items, in the same order, each
    as it was. Raises BatchChanged, Invalid."""
    if not said.items or len(said.items) > MOST:
        raise Invalid(f"Choose 1 to {MOST} items. Nothing was recorded.")
    changes = list(_changes(said, members))
    staying = {member.id: member for member in members if not member.gone}
    ordered = [pk for pk in staying if pk in set(said.items)]
    if not changes and ordered != list(said.items):
        raise Invalid("Name each item once, in the order of the batch.")
    now = alike.digest(staying[pk].entry for pk in ordered)
    if changes or now != said.digest:
        raise BatchChanged(_changed_said(len(changes), len(said.items)), errors=changes)


def _changes(said: SaidOfMany, members: Sequence[Member]) -> list[FieldError]:
    known = {member.id: member for member in members}
    found = [
        at(pk, "It is no longer in this batch.") for pk in said.items if pk not in known
    ]
    for member in members:
        if why := _change(said, member):
            found.append(at(member.id, why))
    return found


def _change(said: SaidOfMany, member: Member) -> str:
    if member.id in said.items:
        return member.gone or _moved(said, member)
    if member.gone or member.id in said.left_out:
        return ""
    return "It joined after this page was made."


def _moved(said: SaidOfMany, member: Member) -> str:
    mark = said.marks.get(member.id)
    if mark is None or mark == member.mark:
        return ""
    if member.changed:
        return f"The agent replaced it at {member.version.created_at:%H:%M:%S}."
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


def _check_total(batch: Batch, chosen: Sequence[Member]) -> None:
    definition = tools.definition(batch.tool)
    total = alike.total_of(member.version for member in chosen)
    if not alike.too_much(total, definition):
        return
    most = definition.batchable.total if definition.batchable else None
    limit = f"{most.amount} {most.currency}" if most else "the ceiling"
    raise Policy(
        f"Together this is above {limit}, the most for one batch. None was decided."
        " Leave some out.",
        errors=[at("items", f"at most {limit} in one batch")],
    )


def _examined(
    said: SaidOfMany, member: Member, outside: Outside, now: datetime
) -> tuple[Case, int | None]:
    """One item's case, and for an approval the place it fills: the same checks as for
    a decision on it alone."""
    one = replace(
        _said_of(said, member),
        flags=said.flags,
        check=said.samples.get(member.id, {}),
        # One page was read for all of them, and one copy of it is kept.
        seen=said.seen if member.id == said.items[0] else None,
    )
    with _naming(member):
        case = decisions.examine(one, member.request, outside, now=now)
        if said.verdict is Verdict.REJECT:
            return case, None
        return case, decisions.place_of(case, case.given())


def _close(
    batch: Batch, said: SaidOfMany, members: Sequence[Member], now: datetime
) -> None:
    """The batch is decided; whoever is not in the list goes back to the queue."""
    outside = [member for member in members if member.id not in set(said.items)]
    BatchItem.objects.filter(pk__in=[one.item.pk for one in outside]).update(
        left_at=now
    )
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
            "left_out": [member.id for member in outside],
            "opened": dict(said.samples),
            "reason_code": said.reason_code,
        },
        private={"reason": said.reason},
    )


def _approve(votes: Sequence[tuple[Case, int | None]], now: datetime) -> None:
    cases.write_many(votes)
    first = votes[0][0]
    seconds = first.version.recall_seconds  # of all of them: they are alike
    if seconds == 0:
        for case, _ in votes:
            cases.authorize(
                case.request, actor=case.said.actor, now=now, guard=cases.still(case)
            )
        return
    transitions.request.apply_many(
        [case.request for case, _ in votes],
        "hold",
        actor=first.said.actor,
        now=now,
        changes={"recall_until": now + timedelta(seconds=seconds)},
        guard=_in_time(),
    )


def _reject(votes: Sequence[tuple[Case, int | None]], now: datetime) -> None:
    cases.write_many(votes)
    requests = [case.request for case, _ in votes]
    transitions.request.apply_many(
        requests,
        "reject",
        actor=votes[0][0].said.actor,
        now=now,
        changes={"settled_at": now, "recall_until": None},
        guard=_in_time(),
        verdict=Verdict.REJECT,
    )
    facts.release_many([request.proposal_id for request in requests])


VERBS = {Verdict.APPROVE: _approve, Verdict.REJECT: _reject}


def _in_time() -> Q:
    """The guard of each row: the deadline by the database's clock. Version and bytes
    cannot move, the rows are locked."""
    return Q(expires_at__gt=ClockTimestamp())


@transaction.atomic(durable=True)
def _log_refused(said: SaidOfMany, error: DomainError) -> None:
    """A verdict without effect is a log record of its own [I8, I30]."""
    batch = Batch.objects.filter(pk=said.batch_id).first()
    if batch is None:
        return
    _note(
        batch,
        "batch.refused",
        said.actor,
        clock.now(),
        {
            "code": error.code,
            "seen": said.digest[:80],
            "requests": [pk for pk in _paths(error) if KNOWN.fullmatch(pk)],
        },
        verdict=said.verdict,
    )


@transaction.atomic(durable=True)
def recall_all(*, batch_id: str, person: Person) -> int:
    """Take back every approval of a batch whose window is still open; how many.

    Raises NotFound, NotYours, Running when no window is open any more.
    """
    batch = locks.batch(batch_id)
    items = batch.items.filter(left_at__isnull=True)
    requests = locks.approval_requests(items.values_list("request", flat=True))
    now = clock.now()
    held = [request for request in requests.values() if _recallable(request, now)]
    if batch.status != BatchStatus.DECIDED or not held:
        raise Running("Nothing of it can be recalled any more. Nothing was stopped.")
    for request in held:
        recalls.take_back(request, person, now)
    ids = [request.pk for request in held]
    items.filter(request__in=ids).update(left_at=now)
    _note(batch, "batch.recalled", _actor(person), now, {"requests": ids})
    return len(held)


def _paths(error: DomainError) -> list[str]:
    return [one["path"] for one in error.errors]


def _recallable(request: ApprovalRequest, now: datetime) -> bool:
    until = request.recall_until
    held = request.status == RequestStatus.RECALLABLE
    return held and until is not None and until > now


@transaction.atomic(durable=True)
def run_rest(*, batch_id: str, person: Person) -> None:
    """Let what waits behind a failure run. Raises NotFound, NotYours, Conflict."""
    batch = _decided(batch_id, person)
    _lift(batch, person, clock.now())
    first = _queued(batch).first()
    if first is not None:
        outbox.publish("execution.queued", subject=first.pk)


@transaction.atomic(durable=True)
def retry_failed(*, batch_id: str, person: Person) -> int:
    """Queue what is known to have failed again, and nothing else: the same grants,
    bytes and keys; how many. Lets the rest run behind them.

    Raises NotFound, NotYours, GrantExpired, Conflict when nothing has failed.
    """
    batch = _decided(batch_id, person)
    failed = batch.executions.filter(status=ExecutionStatus.FAILED)
    rows = [
        locks.execution(pk) for pk in failed.order_by("pk").values_list("pk", flat=True)
    ]
    now = clock.now()
    again = [row for row in rows if row.status == ExecutionStatus.FAILED]
    if not again:
        raise Conflict("Nothing of it has failed. Nothing was changed.")
    for execution in again:
        settlements.queue_again(execution, person, now)
    if batch.halted_at is not None:
        _lift(batch, person, now)
    return len(again)


def _decided(batch_id: str, person: Person) -> Batch:
    """Raises NotFound, NotYours, Conflict."""
    batch = Batch.objects.filter(pk=batch_id).first()
    if batch is None:
        raise NotFound
    permissions.admitted_role(person, batch.queue_id)
    if batch.status != BatchStatus.DECIDED:
        raise Conflict("This batch has not been decided. Nothing was changed.")
    return batch


def _lift(batch: Batch, person: Person, now: datetime) -> None:
    halted = Batch.objects.filter(pk=batch.pk, halted_at__isnull=False)
    if halted.update(halted_at=None) != 1:
        raise Conflict("Nothing of it waits behind a failure. Nothing was changed.")
    _note(batch, "batch.resumed", _actor(person), now, {})


def _queued(batch: Batch) -> Any:
    rows = Execution.objects.filter(batch=batch, status=ExecutionStatus.QUEUED)
    return rows.order_by("batch_position")


def _actor(person: Person) -> log.Actor:
    return log.Actor("person", person.public_id)


def _note(
    batch: Batch,
    kind: str,
    actor: log.Actor,
    now: datetime,
    data: Mapping[str, Any],
    verdict: str = "",
) -> None:
    log.append(
        kind,
        actor=actor,
        at=now,
        agent=batch.agent,
        verdict=verdict,
        data={"batch": batch.pk, **data},
    )

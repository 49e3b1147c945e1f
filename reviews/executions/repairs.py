"""Repairs: change a stuck row by hand, by two people (gate.md section 7, "Repair").

A supervisor proposes one listed change, and a second person of another role confirms
it. No listed change touches bytes, hashes, votes or the log, or leads to an
authorization.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction

from journal import canonical, clock, log
from journal.errors import Conflict, NotYours, Unwritten, at
from policies.models import Person
from reviews import locks, permissions, transitions
from reviews.choices import (
    ExecutionStatus,
    GrantStatus,
    RepairChange,
    RepairStatus,
    RepairSubject,
)
from reviews.grants import uncertain
from reviews.models import Execution, Repair
from reviews.permissions import Permission

from . import finish
from .rechecks import No

FOR = timedelta(hours=24)  # an unconfirmed repair lapses after this
STUCK = timedelta(minutes=5)  # far longer than a sweep takes to handle the row
TIMER = log.Actor("system", "timer")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One change of one subject: its present values and the values after the change."""

    subject: RepairSubject
    key: str
    agent: str
    thread: str
    change: RepairChange
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@transaction.atomic(durable=True)
def propose_repair(
    *, execution_id: str, change: RepairChange, person: Person, reason: str
) -> Repair:
    """Propose the repair of an execution. Raises NotFound, NotYours, Unwritten,
    Conflict. Locks: the grant, the execution."""
    execution = locks.execution(execution_id)
    permissions.admitted_role(person, execution.grant.revision.known_tool.queue_id)
    now = clock.now()
    wanted = of_execution(execution, change, now)
    return put(wanted, person=person, reason=reason, now=now)


@transaction.atomic(durable=True)
def confirm_repair(*, repair_id: str, person: Person) -> Repair:
    """Confirm a repair and apply it. Raises NotFound, NotYours, or Conflict when the
    repair is over or the execution has changed. Locks: the repair, the grant, the
    execution."""
    now = clock.now()
    repair = taken(repair_id, person=person, now=now)
    execution = locks.execution(repair.key)
    wanted = of_execution(execution, RepairChange(repair.change), now)
    check_unchanged(repair, wanted)
    if wanted.change is RepairChange.SAY_UNKNOWN:
        said = "Two people said that nobody goes on with it."
        finish.lose(execution, "repaired", said, now, actor_of(person))
    else:
        finish.refuse(execution, No("window_closed", "It never ran in time."), now)
    return applied(repair, person=person, now=now)


@transaction.atomic(durable=True)
def refuse_repair(*, repair_id: str, person: Person, answer: str) -> Repair:
    """Refuse a repair, or withdraw one's own; its subject stays unchanged. Raises
    NotFound, NotYours, Unwritten, Conflict. Locks: the repair."""
    repair = locks.repair(repair_id)
    if repair.proposed_by != person.public_id:
        permissions.check(person, Permission.CONFIRM_REPAIR)
    if not answer.strip():
        raise Unwritten(errors=[at("answer", "say why not")])
    now = clock.now()
    changes = {"settled_by": person.public_id, "settled_at": now, "answer": answer}
    return _move(repair, "refuse", person, now, changes, answer=answer)


@transaction.atomic(durable=True)
def lapse_repairs() -> int:
    """End up to 100 repairs that nobody confirmed in time. Returns how many."""
    due = Repair.objects.filter(
        status=RepairStatus.PROPOSED, lapses_at__lte=clock.ClockTimestamp()
    )
    rows = list(locks.repairs_due(due)[:100])
    now = clock.now()
    transitions.repair.apply_many(
        rows, "lapse", actor=TIMER, now=now, changes={"settled_at": now}, each=_about
    )
    return len(rows)


def of_execution(execution: Execution, change: RepairChange, now: datetime) -> Wanted:
    """Build the repair of an execution, with its values before and after. Raises
    Conflict when the execution does not need this change."""
    proposal = execution.grant.proposal
    before, after = _EXECUTIONS[change](execution, now)
    return Wanted(
        subject=RepairSubject.EXECUTION,
        key=execution.pk,
        agent=proposal.agent,
        thread=proposal.thread,
        change=change,
        before=before,
        after=after,
    )


def _say_unknown(execution: Execution, now: datetime) -> tuple[Any, Any]:
    lease = execution.lease_until
    if execution.status != ExecutionStatus.CLAIMED or lease is None:
        raise Conflict("Nobody has it in hand. There is nothing to mend.")
    if lease + STUCK > now:
        raise Conflict("It may still be taken over by itself. Wait a few minutes.")
    before = {
        "status": execution.status,
        "fence": execution.fence,
        "attempts": execution.attempts,
        "lease until": lease.isoformat(timespec="seconds"),
    }
    after = {**before, "status": ExecutionStatus.UNKNOWN.value, "lease until": None}
    return before, after


def _never_run(execution: Execution, now: datetime) -> tuple[Any, Any]:
    ends = execution.grant.expires_at
    if execution.status != ExecutionStatus.QUEUED:
        raise Conflict("It does not wait to run. There is nothing to mend.")
    if ends + STUCK > now:
        raise Conflict("Its time to run is not over, or just was. Wait a few minutes.")
    before = {
        "status": execution.status,
        "grant": execution.grant.status,
        "window until": ends.isoformat(timespec="seconds"),
    }
    # An execution that came back with a backup may have run: never call it refused.
    doubted = uncertain.of_restore(execution) is not None
    status = ExecutionStatus.UNKNOWN if doubted else ExecutionStatus.REFUSED
    live = execution.grant.status == GrantStatus.LIVE
    ended = GrantStatus.SPENT if doubted else GrantStatus.EXPIRED
    grant = ended.value if live else execution.grant.status
    return before, {**before, "status": status.value, "grant": grant}


def _nothing(execution: Execution, now: datetime) -> tuple[Any, Any]:
    raise Conflict("An execution is not mended so. Nothing was changed.")


_EXECUTIONS = {
    RepairChange.SAY_UNKNOWN: _say_unknown,
    RepairChange.NEVER_RUN: _never_run,
    RepairChange.FINISH: _nothing,
    RepairChange.CHECKPOINT: _nothing,
}


def put(wanted: Wanted, *, person: Person, reason: str, now: datetime) -> Repair:
    """Create the proposed repair, for a second person to confirm. A step. Raises
    NotYours, Unwritten, or Conflict when one is already open for the subject. Caller
    holds the subject's lock."""
    permissions.check(person, Permission.PROPOSE_REPAIR)
    if not reason.strip():
        raise Unwritten(errors=[at("reason", "say what is wrong")])
    open_ = Repair.objects.filter(subject=wanted.subject, key=wanted.key)
    if open_.filter(status=RepairStatus.PROPOSED).exists():
        raise Conflict("A repair of this is proposed already. Nothing was changed.")
    repair = Repair(
        subject=wanted.subject,
        key=wanted.key,
        agent=wanted.agent,
        thread=wanted.thread,
        change=wanted.change,
        before=wanted.before,
        after=wanted.after,
        reason=reason,
        proposed_by=person.public_id,
        proposed_at=now,
        lapses_at=now + FOR,
    )
    try:
        _create(repair, person, now)
    except IntegrityError:
        raise Conflict("A repair of this is proposed already.") from None
    return repair


def _create(repair: Repair, person: Person, now: datetime) -> None:
    transitions.repair.create(
        repair,
        "propose",
        actor=actor_of(person),
        now=now,
        **_about(repair),
        private={"reason": repair.reason, **_values(repair)},
    )


def taken(repair_id: str, *, person: Person, now: datetime) -> Repair:
    """Load the open repair, locked, for a second person of another role. A step. Raises
    NotFound, NotYours, Conflict."""
    repair = locks.repair(repair_id)
    check_may_confirm(person, repair)
    if repair.status != RepairStatus.PROPOSED or repair.lapses_at <= now:
        raise Conflict("This repair is over. Nothing was changed.")
    return repair


def check_may_confirm(person: Person, repair: Repair) -> None:
    """Check that this person may confirm it; nobody confirms their own proposal.
    Raises NotYours."""
    permissions.check(person, Permission.CONFIRM_REPAIR)
    if repair.proposed_by == person.public_id:  # guard: own-repair
        raise NotYours("You proposed this, so someone else must confirm it.")


def check_unchanged(repair: Repair, wanted: Wanted) -> None:
    """Check that the subject still has the values that the repair shows to the person
    who confirms it. Raises Conflict."""
    then, now = (repair.before, repair.after), (wanted.before, wanted.after)
    if [*map(_bytes, then)] != [*map(_bytes, now)]:
        raise Conflict(
            "It changed since the repair was proposed. Nothing was changed. "
            "Look at it again, and propose anew if it still needs it."
        )


def _bytes(values: Mapping[str, Any]) -> bytes:
    return canonical.encode(dict(values))


def applied(repair: Repair, *, person: Person, now: datetime) -> Repair:
    """Record that the repair was applied. A step: the caller has just applied it."""
    changes = {"settled_by": person.public_id, "settled_at": now}
    return _move(repair, "apply", person, now, changes, **_values(repair))


def _move(
    repair: Repair,
    event: str,
    person: Person,
    now: datetime,
    changes: Mapping[str, Any],
    **private: str,
) -> Repair:
    return transitions.repair.apply(
        repair,
        event,
        actor=actor_of(person),
        now=now,
        changes=changes,
        **_about(repair),
        private=private,
    )


def _about(repair: Repair) -> dict[str, Any]:
    """The `data` of every log record about a repair."""
    said = {
        "repair": repair.pk,
        "subject": repair.subject,
        "key": repair.key,
        "change": repair.change,
    }
    return {"data": said}


def _values(repair: Repair) -> dict[str, str]:
    """Before and after, as JSON text. It goes to the private part of the log record,
    because a checkpoint may hold what a person wrote."""
    return {
        "before": canonical.encode(repair.before).decode(),
        "after": canonical.encode(repair.after).decode(),
    }


def actor_of(person: Person) -> log.Actor:
    return log.Actor("person", person.public_id)

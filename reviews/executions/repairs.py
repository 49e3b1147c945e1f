"""Repairs: change a stuck row by hand, by two people.

A supervisor proposes one listed change, and a second person of another role confirms
it. No listed change touches bytes, hashes, votes or the log, or leads to an
authorization.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError

from journal import canonical, clock, log, sweeps
from journal.errors import Conflict, NotPermitted, TextMissing, build_field_error
from journal.operations import operation
from policies import solo
from policies.models import Person
from policies.people import build_actor
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
from reviews.roles import Permission

from . import finish
from .rechecks import Refusal

CONFIRMATION_PERIOD = timedelta(hours=24)  # an unconfirmed repair lapses after this
STUCK_AFTER = timedelta(minutes=5)  # far longer than a sweep takes to handle the row
TIMER = log.Actor("system", "timer")


@operation(locks="grant, execution", writes="Repair", logs="repair.proposed")
def propose_repair(
    *,
    execution_id: str,
    change: RepairChange,
    person: Person,
    reason: str,
    shown: str = "",
) -> Repair:
    """Propose the repair of an execution. `shown` is the `canonical.format_shown` of
    the values that the person read; empty without a page. Raises NotFound,
    NotPermitted, TextMissing, Conflict, StaleVersion."""
    execution = locks.lock_execution(execution_id)
    permissions.check_admitted_to_queue(
        person, execution.grant.revision.known_tool.queue_id
    )
    now = clock.now()
    repair = build_execution_repair(execution, change, now)
    return create_repair(repair, person=person, reason=reason, now=now, shown=shown)


@operation(
    locks="repair, grant, execution, alarm",
    writes="Repair, Execution, Grant, Observation, Batch (halted), Alarm",
    logs="repair.applied; execution.unknown, or grant.expired and execution.refused; "
    "alarm.raised",
    after="mail, webhook, wake-up",
)
def confirm_repair(*, repair_id: str, person: Person, shown: str = "") -> Repair:
    """Confirm a repair and apply it. `shown` is the `canonical.format_shown` of the
    repair that the person read; empty without a page. Raises NotFound, NotPermitted,
    StaleVersion, or Conflict when the repair is over or the execution has changed."""
    now = clock.now()
    repair = load_confirmable_repair(repair_id, person=person, now=now, shown=shown)
    execution = locks.lock_execution(repair.key)
    fresh = build_execution_repair(execution, RepairChange(repair.change), now)
    check_unchanged(repair, fresh)
    if repair.change == RepairChange.SAY_UNKNOWN:
        detail = "Two people marked its result as unknown."
        finish.mark_unknown(execution, "repaired", detail, now, build_actor(person))
    else:
        detail = "It did not run in its execution window."
        finish.refuse_execution(execution, Refusal("window_closed", detail), now)
    return mark_repair_applied(repair, person=person, now=now)


@operation(locks="repair", writes="Repair", logs="repair.refused")
def refuse_repair(*, repair_id: str, person: Person, answer: str) -> Repair:
    """Refuse a repair, or withdraw one's own; its subject stays unchanged. Raises
    NotFound, NotPermitted, TextMissing, Conflict."""
    repair = locks.lock_repair(repair_id)
    if repair.proposed_by != person.public_id:
        permissions.check_permission(person, Permission.CONFIRM_REPAIR)
    if not answer.strip():
        raise TextMissing(errors=[build_field_error("answer", "say why not")])
    now = clock.now()
    changes = {"settled_by": person.public_id, "settled_at": now, "answer": answer}
    return _apply_transition(repair, "refuse", person, now, changes, answer=answer)


@operation(locks="repairs (skip locked)", writes="Repair", logs="repair.lapsed")
def lapse_repairs() -> int:
    """End up to 100 repairs that nobody confirmed in time. Returns how many."""
    due = Repair.objects.filter(
        status=RepairStatus.PROPOSED, lapses_at__lte=clock.ClockTimestamp()
    )
    rows = list(locks.lock_due_rows(due.order_by("pk"))[:100])
    now = clock.now()

    def lapse(unconfirmed: list[Repair]) -> None:
        transitions.repair.apply_many(
            unconfirmed,
            "lapse",
            actor=TIMER,
            now=now,
            changes={"settled_at": now},
            each=_build_log_data,
        )

    return len(sweeps.apply_to_all(lapse, rows))


def build_execution_repair(
    execution: Execution, change: RepairChange, now: datetime
) -> Repair:
    """Build the repair of an execution, with its values before and after; it is not
    stored. Raises Conflict when the execution does not need this change."""
    proposal = execution.grant.proposal
    before, after = _EXECUTION_CHANGES[change](execution, now)
    return Repair(
        subject=RepairSubject.EXECUTION,
        key=execution.pk,
        agent=proposal.agent,
        thread=proposal.thread,
        change=change,
        before=before,
        after=after,
    )


def _build_unknown_change(execution: Execution, now: datetime) -> tuple[Any, Any]:
    lease = execution.lease_until
    if execution.status != ExecutionStatus.CLAIMED or lease is None:
        raise Conflict("No attempt is in progress. There is nothing to repair.")
    if lease + STUCK_AFTER > now:
        raise Conflict("A worker may still take it over. Wait a few minutes.")
    before = {
        "status": execution.status,
        "fence": execution.fence,
        "attempts": execution.attempts,
        "lease until": lease.isoformat(timespec="seconds"),
    }
    after = {**before, "status": ExecutionStatus.UNKNOWN.value, "lease until": None}
    return before, after


def _build_never_ran_change(execution: Execution, now: datetime) -> tuple[Any, Any]:
    ends = execution.grant.expires_at
    if execution.status != ExecutionStatus.QUEUED:
        raise Conflict("It is not waiting to run. There is nothing to repair.")
    if ends + STUCK_AFTER > now:
        raise Conflict(
            "Its execution window has not ended, or has just ended. Wait a few minutes."
        )
    before = {
        "status": execution.status,
        "grant": execution.grant.status,
        "window until": ends.isoformat(timespec="seconds"),
    }
    # An execution that came back with a backup may have run: never call it refused.
    doubted = uncertain.find_uncertain_outcome(execution) is not None
    status = ExecutionStatus.UNKNOWN if doubted else ExecutionStatus.REFUSED
    live = execution.grant.status == GrantStatus.LIVE
    ended = GrantStatus.SPENT if doubted else GrantStatus.EXPIRED
    grant = ended.value if live else execution.grant.status
    return before, {**before, "status": status.value, "grant": grant}


def _refuse_change(execution: Execution, now: datetime) -> tuple[Any, Any]:
    raise Conflict("This repair does not apply to an execution. Nothing was changed.")


_EXECUTION_CHANGES = {
    RepairChange.SAY_UNKNOWN: _build_unknown_change,
    RepairChange.NEVER_RUN: _build_never_ran_change,
    RepairChange.FINISH: _refuse_change,
    RepairChange.CHECKPOINT: _refuse_change,
}


def create_repair(
    repair: Repair, *, person: Person, reason: str, now: datetime, shown: str
) -> Repair:
    """Store a repair that was built, for a second person to confirm. A step. Raises
    NotPermitted, TextMissing, StaleVersion, or Conflict when one is already open for
    the subject. Caller holds the subject's lock."""
    permissions.check_permission(person, Permission.PROPOSE_REPAIR)
    if not reason.strip():
        raise TextMissing(errors=[build_field_error("reason", "say what is wrong")])
    open_ = Repair.objects.filter(subject=repair.subject, key=repair.key)
    if open_.filter(status=RepairStatus.PROPOSED).exists():
        raise Conflict("A repair of this is already proposed. Nothing was changed.")
    parts = build_shown_values(repair.before)
    canonical.check_shown(shown, parts, "Nothing was proposed.")  # guard: values-shown
    repair.reason, repair.proposed_by = reason, person.public_id
    repair.proposed_at, repair.lapses_at = now, now + CONFIRMATION_PERIOD
    repair.solo = solo.is_solo()
    try:
        transitions.repair.create(
            repair,
            "propose",
            actor=build_actor(person),
            now=now,
            **_build_log_data(repair),
            private={"reason": reason, **_format_values(repair)},
        )
    except IntegrityError:
        raise Conflict("A repair of this is already proposed.") from None
    return repair


def build_shown_values(before: Mapping[str, Any]) -> dict[str, object]:
    """The values that the proposal of a repair is bound to."""
    return {"what it would change": dict(before)}


def build_shown_repair(repair: Repair) -> dict[str, object]:
    """The parts of a repair that its confirmation is bound to."""
    return {
        "the repair": [repair.subject, repair.key, repair.change],
        "its values before": repair.before,
        "its values after": repair.after,
        "its reason": repair.reason,
    }


def load_confirmable_repair(
    repair_id: str, *, person: Person, now: datetime, shown: str
) -> Repair:
    """Load the open repair, locked, for a second person of another role. A step. Raises
    NotFound, NotPermitted, Conflict, StaleVersion."""
    repair = locks.lock_repair(repair_id)
    check_may_confirm(person, repair)
    if repair.status != RepairStatus.PROPOSED or repair.lapses_at <= now:
        raise Conflict("This repair is resolved already. Nothing was changed.")
    parts = build_shown_repair(repair)
    canonical.check_shown(shown, parts, "Nothing was changed.")  # guard: repair-shown
    return repair


def check_may_confirm(person: Person, repair: Repair) -> None:
    """Check that this person may confirm it; nobody confirms their own proposal.
    Raises NotPermitted."""
    permissions.check_permission(person, Permission.CONFIRM_REPAIR)
    # guard: own-repair
    if repair.proposed_by == person.public_id and not (repair.solo and solo.is_solo()):
        raise NotPermitted("You proposed this, so someone else must confirm it.")


def check_unchanged(repair: Repair, fresh: Repair) -> None:
    """Check that the subject still has the values that the repair shows to the person
    who confirms it; `fresh` is the same repair, built now. Raises Conflict."""
    if _format_values(repair) != _format_values(fresh):
        raise Conflict(
            "The run changed since the repair was proposed. Nothing was changed. "
            "Check it, and propose the repair again if it is still needed."
        )


def mark_repair_applied(repair: Repair, *, person: Person, now: datetime) -> Repair:
    """Record that the repair was applied. A step: the caller has just applied it."""
    changes = {"settled_by": person.public_id, "settled_at": now}
    return _apply_transition(
        repair, "apply", person, now, changes, **_format_values(repair)
    )


def _apply_transition(
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
        actor=build_actor(person),
        now=now,
        changes=changes,
        **_build_log_data(repair),
        private=private,
    )


def _build_log_data(repair: Repair) -> dict[str, Any]:
    return {
        "data": {
            "repair": repair.pk,
            "subject": repair.subject,
            "key": repair.key,
            "change": repair.change,
        }
    }


def _format_values(repair: Repair) -> dict[str, str]:
    """Before and after, as JSON text. It goes to the private part of the log record,
    because a checkpoint may hold what a person wrote."""
    return {
        "before": canonical.encode(repair.before).decode(),
        "after": canonical.encode(repair.after).decode(),
    }

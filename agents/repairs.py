"""Repairs of an agent's state: ending a run whose agent is dead, and correcting a
checkpoint. The repair of executions, and the rule that a repair takes two people, are
in `reviews.executions.repairs`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from journal import canonical, clock
from journal.errors import (
    Conflict,
    InvalidInput,
    InvalidJson,
    NotFound,
    TooLarge,
    build_field_error,
)
from journal.operations import operation
from policies.models import Person
from policies.people import build_actor
from reviews.choices import RepairChange, RepairSubject
from reviews.executions import repairs
from reviews.models import Proposal, Repair
from reviews.redaction.redactor import load_redactor
from reviews.stops import stops

from . import checkpoints, locks, proposals, selectors
from .choices import ThreadResult, ThreadStatus
from .models import Agent, Checkpoint, Thread
from .schemas.proposals import STATE_LIMIT


@operation(locks="thread", writes="Repair", logs="repair.proposed")
def propose_repair(
    *,
    agent: Agent,
    name: str,
    change: RepairChange,
    person: Person,
    reason: str,
    resume_at: str = "",
    state: str = "",
    shown: str = "",
) -> Repair:
    """Propose a repair of a run. `resume_at` and `state` (JSON text) are for the
    correction of a checkpoint; `shown` is the `canonical.format_shown` of the values
    that the person read, empty without a page. Raises NotFound, NotPermitted,
    TextMissing, Conflict, StaleVersion, InvalidInput, TooLarge."""
    thread = locks.lock_thread(agent, name)
    now = clock.now()
    if change is RepairChange.FINISH:
        repair = _build_finish_repair(thread, now)
    else:
        new_state = _parse_state(thread, state)
        repair = _build_checkpoint_repair(thread, resume_at, new_state)
    return repairs.create_repair(
        repair, person=person, reason=reason, now=now, shown=shown
    )


@operation(
    locks="repair, thread, requests",
    writes="Repair; Checkpoint, or Thread, ApprovalRequest, Grant, Execution, "
    "Observation",
    logs="repair.applied, thread.finished, request.withdrawn, grant.revoked, "
    "execution.refused",
    after="mail, webhook, wake-up",
)
def confirm_repair(*, repair_id: str, person: Person, shown: str = "") -> Repair:
    """Confirm a repair and apply it. `shown` is the `canonical.format_shown` of the
    repair that the person read; empty without a page. Raises NotFound, NotPermitted,
    StaleVersion, and Conflict when the run has changed since the repair was
    proposed."""
    now = clock.now()
    repair = repairs.load_confirmable_repair(
        repair_id, person=person, now=now, shown=shown
    )
    agent = Agent.objects.get(slug=repair.agent)
    thread = locks.lock_thread(agent, repair.thread)
    if repair.change == RepairChange.FINISH:
        repairs.check_unchanged(repair, _build_finish_repair(thread, now))
        actor = build_actor(person)
        proposals.apply_finish(thread, ThreadResult.FAILED, actor=actor, now=now)
    else:
        resume_at, state = repair.after["resume_at"], repair.after["state"]
        fresh = _build_checkpoint_repair(thread, resume_at, state)
        repairs.check_unchanged(repair, fresh)
        checkpoints.correct_checkpoint(
            _load_latest_checkpoint(thread),
            resume_at=resume_at,
            state=state,
            repair=repair.pk,
            now=now,
        )
    return repairs.mark_repair_applied(repair, person=person, now=now)


def _build_finish_repair(thread: Thread, now: datetime) -> Repair:
    if thread.status != ThreadStatus.RUNNING:
        raise Conflict("This run is finished. There is nothing to repair.")
    if not selectors.is_silent(thread, now):
        raise Conflict(
            "This run was active a moment ago. Stop it, or wait ten minutes."
        )
    change = RepairChange.FINISH
    before = read_present_values(thread, change)
    after = {**before, "status": "finished", "result": ThreadResult.FAILED.value}
    return _build_repair(thread, RepairSubject.THREAD, change, before, after)


def _build_checkpoint_repair(thread: Thread, resume_at: str, state: Any) -> Repair:
    change = RepairChange.CHECKPOINT
    before = read_present_values(thread, change)
    after = {"version": before["version"] + 1, "resume_at": resume_at, "state": state}
    if (resume_at, state) == (before["resume_at"], before["state"]):
        raise Conflict("The checkpoint already has these values.")
    return _build_repair(thread, RepairSubject.CHECKPOINT, change, before, after)


def read_present_values(thread: Thread, change: RepairChange) -> dict[str, Any]:
    """The values that a repair of the run, or of its checkpoint, would change. Raises
    NotFound for a run without a checkpoint."""
    if change is RepairChange.FINISH:
        proposed = Proposal.objects.filter(agent=thread.agent.slug, thread=thread.name)
        checkpoint = checkpoints.find_latest_checkpoint(thread)
        return {
            "status": thread.status,
            "proposals": proposed.count(),
            "checkpoint": checkpoint.number if checkpoint else 0,
        }
    latest = _load_latest_checkpoint(thread)
    return {
        "version": latest.number,
        "resume_at": latest.resume_at,
        "state": latest.state,
    }


def _build_repair(
    thread: Thread,
    subject: RepairSubject,
    change: RepairChange,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> Repair:
    agent = thread.agent.slug
    return Repair(
        subject=subject,
        key=stops.build_thread_key(agent, thread.name),
        agent=agent,
        thread=thread.name,
        change=change,
        before=before,
        after=after,
    )


def _load_latest_checkpoint(thread: Thread) -> Checkpoint:
    latest = checkpoints.find_latest_checkpoint(thread)
    if latest is None:
        raise NotFound("This run has no checkpoint.")
    return latest


def _parse_state(thread: Thread, typed: str) -> Any:
    raw = typed.encode()
    if len(raw) > STATE_LIMIT:
        raise TooLarge("The state is larger than 64 KiB. Nothing was changed.")
    try:
        state = canonical.parse(raw)
    except InvalidJson as error:
        raise InvalidInput(
            error.detail, errors=[build_field_error("state", error.detail)]
        ) from None
    if not isinstance(state, dict):
        raise InvalidInput(errors=[build_field_error("state", "must be an object")])
    redactor = load_redactor(thread.agent.slug, thread.name)
    return redactor.foreign(state)

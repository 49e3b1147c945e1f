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
from reviews.executions.repairs import PlannedRepair
from reviews.models import Proposal, Repair
from reviews.redaction.redactor import load_redactor
from reviews.stops import stops

from . import checkpoints, locks, proposals, selectors
from .choices import ThreadResult, ThreadStatus
from .models import Agent, Checkpoint, Thread
from .schemas import STATE_LIMIT

MAX_RESUME_AT_LENGTH = 128


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
        wanted = _build_finish_change(thread, now)
    else:
        wanted = _build_checkpoint_change(
            thread, resume_at, _parse_state(thread, state)
        )
    return repairs.create_repair(
        wanted, person=person, reason=reason, now=now, shown=shown
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
        repairs.check_unchanged(repair, _build_finish_change(thread, now))
        actor = build_actor(person)
        proposals.apply_finish(thread, ThreadResult.FAILED, actor=actor, now=now)
    else:
        after = repair.after
        wanted = _build_checkpoint_change(thread, after["resume_at"], after["state"])
        repairs.check_unchanged(repair, wanted)
        checkpoints.correct_checkpoint(
            _load_latest_checkpoint(thread),
            repair=repair.pk,
            now=now,
            **_pick_checkpoint_fields(after),
        )
    return repairs.mark_repair_applied(repair, person=person, now=now)


def _pick_checkpoint_fields(after: Mapping[str, Any]) -> dict[str, Any]:
    return {"resume_at": after["resume_at"], "state": after["state"]}


def _build_finish_change(thread: Thread, now: datetime) -> PlannedRepair:
    if thread.status != ThreadStatus.RUNNING:
        raise Conflict("This run is finished. There is nothing to repair.")
    if not selectors.is_silent(thread, now):
        raise Conflict(
            "This run was active a moment ago. Stop it, or wait ten minutes."
        )
    before = read_present_values(thread, RepairChange.FINISH)
    after = {**before, "status": "finished", "result": ThreadResult.FAILED.value}
    return _build_change(
        thread, RepairSubject.THREAD, RepairChange.FINISH, before, after
    )


def _build_checkpoint_change(
    thread: Thread, resume_at: str, state: Any
) -> PlannedRepair:
    latest = _load_latest_checkpoint(thread)
    before = read_present_values(thread, RepairChange.CHECKPOINT)
    after = {"version": latest.number + 1, "resume_at": resume_at, "state": state}
    if (resume_at, state) == (latest.resume_at, latest.state):
        raise Conflict("The checkpoint already has these values.")
    change = RepairChange.CHECKPOINT
    return _build_change(thread, RepairSubject.CHECKPOINT, change, before, after)


def read_present_values(thread: Thread, change: RepairChange) -> dict[str, Any]:
    """The values that a repair of the run, or of its checkpoint, would change. Raises
    NotFound for a run without a checkpoint."""
    if change is RepairChange.FINISH:
        return {
            "status": thread.status,
            "proposals": _select_proposals(thread).count(),
            "checkpoint": _find_checkpoint_number(thread),
        }
    latest = _load_latest_checkpoint(thread)
    return {
        "version": latest.number,
        "resume_at": latest.resume_at,
        "state": latest.state,
    }


def _build_change(
    thread: Thread, subject: RepairSubject, change: RepairChange, *values: Any
) -> PlannedRepair:
    agent = thread.agent.slug
    key = stops.build_thread_key(agent, thread.name)
    return PlannedRepair(subject, key, agent, thread.name, change, *values)


def _select_proposals(thread: Thread) -> Any:
    return Proposal.objects.filter(agent=thread.agent.slug, thread=thread.name)


def _find_checkpoint_number(thread: Thread) -> int:
    latest = checkpoints.find_latest_checkpoint(thread)
    return latest.number if latest else 0


def _load_latest_checkpoint(thread: Thread) -> Checkpoint:
    latest = checkpoints.find_latest_checkpoint(thread)
    if latest is None:
        raise NotFound("This run has no checkpoint.")
    return latest


def _parse_state(thread: Thread, typed: str) -> Any:
    """Parse the JSON object that a person typed, and redact it like an agent's. Raises
    InvalidInput, TooLarge."""
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

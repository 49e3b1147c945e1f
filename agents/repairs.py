"""Repairs of an agent's state: ending a run whose agent is dead, and correcting a
checkpoint. The repair of executions, and the rule that a repair takes two people, are
in `reviews.executions.repairs`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from journal import canonical, clock
from journal.errors import Conflict, Invalid, InvalidJson, NotFound, TooLarge, at
from policies.models import Person
from reviews.choices import RepairChange, RepairSubject
from reviews.executions import repairs
from reviews.executions.repairs import Wanted
from reviews.models import Proposal, Repair
from reviews.redaction import redactor as redacting
from reviews.stops import stops

from . import checkpoints, locks, proposals, selectors
from .choices import ThreadResult, ThreadStatus
from .models import Agent, Checkpoint, Thread
from .schemas import STATE_LIMIT

RESUME_LENGTH = 128


@transaction.atomic(durable=True)
def propose_repair(
    *,
    agent: Agent,
    name: str,
    change: RepairChange,
    person: Person,
    reason: str,
    resume_at: str = "",
    state: str = "",
) -> Repair:
    """Propose a repair of a run. `resume_at` and `state` (JSON text) are for the
    correction of a checkpoint. Raises NotFound, NotYours, Unwritten, Conflict, Invalid,
    TooLarge. Locks: the thread."""
    thread = locks.thread(agent, name)
    now = clock.now()
    if change is RepairChange.FINISH:
        wanted = _finishing(thread, now)
    else:
        wanted = _correcting(thread, resume_at, _state(thread, state))
    return repairs.put(wanted, person=person, reason=reason, now=now)


@transaction.atomic(durable=True)
def confirm_repair(*, repair_id: str, person: Person) -> Repair:
    """Confirm a repair and apply it. Raises NotFound, NotYours, and Conflict when the
    run has changed since the repair was proposed. Locks: the repair, the thread, its
    requests by pk."""
    now = clock.now()
    repair = repairs.taken(repair_id, person=person, now=now)
    agent = Agent.objects.get(slug=repair.agent)
    thread = locks.thread(agent, repair.thread)
    if repair.change == RepairChange.FINISH:
        repairs.check_unchanged(repair, _finishing(thread, now))
        actor = repairs.actor_of(person)
        proposals.end(thread, ThreadResult.FAILED, actor=actor, now=now)
    else:
        after = repair.after
        wanted = _correcting(thread, after["resume_at"], after["state"])
        repairs.check_unchanged(repair, wanted)
        checkpoints.correct(_latest(thread), repair=repair.pk, now=now, **_new(after))
    return repairs.applied(repair, person=person, now=now)


def _new(after: Mapping[str, Any]) -> dict[str, Any]:
    return {"resume_at": after["resume_at"], "state": after["state"]}


def _finishing(thread: Thread, now: datetime) -> Wanted:
    if thread.status != ThreadStatus.RUNNING:
        raise Conflict("This run is finished. There is nothing to mend.")
    if not selectors.is_silent(thread, now):
        raise Conflict("It was heard of a moment ago. Stop it, or wait ten minutes.")
    before = {
        "status": thread.status,
        "proposals": _proposals(thread).count(),
        "checkpoint": _number(thread),
    }
    after = {**before, "status": "finished", "result": ThreadResult.FAILED.value}
    return _wanted(thread, RepairSubject.THREAD, RepairChange.FINISH, before, after)


def _correcting(thread: Thread, resume_at: str, state: Any) -> Wanted:
    latest = _latest(thread)
    before = {
        "version": latest.number,
        "resume_at": latest.resume_at,
        "state": latest.state,
    }
    after = {"version": latest.number + 1, "resume_at": resume_at, "state": state}
    if (resume_at, state) == (latest.resume_at, latest.state):
        raise Conflict("This is what the checkpoint says already.")
    change = RepairChange.CHECKPOINT
    return _wanted(thread, RepairSubject.CHECKPOINT, change, before, after)


def _wanted(
    thread: Thread, subject: RepairSubject, change: RepairChange, *values: Any
) -> Wanted:
    agent = thread.agent.slug
    key = stops.thread_key(agent, thread.name)
    return Wanted(subject, key, agent, thread.name, change, *values)


def _proposals(thread: Thread) -> Any:
    return Proposal.objects.filter(agent=thread.agent.slug, thread=thread.name)


def _number(thread: Thread) -> int:
    latest = checkpoints.latest(thread)
    return latest.number if latest else 0


def _latest(thread: Thread) -> Checkpoint:
    latest = checkpoints.latest(thread)
    if latest is None:
        raise NotFound("This run left no checkpoint.")
    return latest


def _state(thread: Thread, typed: str) -> Any:
    """Parse the JSON object that a person typed, and redact it like an agent's. Raises
    Invalid, TooLarge."""
    raw = typed.encode()
    if len(raw) > STATE_LIMIT:
        raise TooLarge("The state is larger than 64 KiB. Nothing was changed.")
    try:
        state = canonical.parse(raw)
    except InvalidJson as error:
        raise Invalid(error.detail, errors=[at("state", error.detail)]) from None
    if not isinstance(state, dict):
        raise Invalid(errors=[at("state", "the state is an object")])
    redactor = redacting.of(thread.agent.slug, thread.name)
    return redactor.foreign(state)

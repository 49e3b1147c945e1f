"""One row in every status of every machine, reached by real operations alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from agents import proposals
from agents import transitions as agents_transitions
from agents.choices import ThreadResult
from agents.models import Agent, Thread
from journal import clock, log
from journal.state_machine import Machine
from policies import versions
from policies.models import Person, PolicyVersion
from reviews import deadlines, transitions
from reviews.alarms import standing
from reviews.batches import formation
from reviews.choices import FINISHED, SETTLED, RepairChange, Scope
from reviews.executions import claims, record, repairs, run
from reviews.holds import take
from reviews.models import (
    Alarm,
    ApprovalRequest,
    Batch,
    Execution,
    Grant,
    Hold,
    Proposal,
    Repair,
)
from reviews.stops import stops
from reviews.tool_services.executors import EffectOutcome
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews.batches import batching

Reach = Callable[[Gate], Any]


def recall_windows(gate: Gate, seconds: int = 60, *, edit: str = "") -> None:
    """The tests' policy again, with a recall window for what is high. `edit` says who
    decides edits of every tool."""
    document = factories.document_of_tests()
    document["recall"]["high"] = seconds
    for tool in document["tools"].values() if edit else ():
        tool["edit"] = edit
    factories.policy(gate.people, document)


def withdraw(agent: Agent, proposal: Proposal) -> None:
    proposals.withdraw_proposal(agent=agent, proposal_id=proposal.pk)


def pending(gate: Gate, thread: str = "t-1") -> ApprovalRequest:
    return propose(gate.agent, thread=thread).request


def held(gate: Gate) -> Hold:
    request = pending(gate)
    take.take_hold(request_id=request.pk, person=gate.rita)
    return Hold.objects.get(pk=request.pk)


def recallable(gate: Gate) -> ApprovalRequest:
    recall_windows(gate)
    request = pending(gate)
    decide(request, gate.rita)
    return request


def authorized(gate: Gate) -> ApprovalRequest:
    request = pending(gate)
    decide(request, gate.rita)
    return request


def rejected(gate: Gate) -> ApprovalRequest:
    request = pending(gate)
    decide(request, gate.rita, "reject")
    return request


def expired(gate: Gate) -> ApprovalRequest:
    request = pending(gate)
    factories.overdue(request)
    deadlines.expire_chunk()
    return request


def withdrawn(gate: Gate) -> ApprovalRequest:
    request = pending(gate)
    withdraw(gate.agent, request.proposal)
    return request


def superseded(gate: Gate) -> ApprovalRequest:
    request = pending(gate)
    propose(gate.agent, "look", supersedes=request.proposal_id)
    return request


def queued(gate: Gate, tool: str = "pay") -> Execution:
    request = propose(gate.agent, tool).request
    decide(request, gate.rita)
    return Execution.objects.get(proposal=request.proposal_id)


def claimed(gate: Gate, tool: str = "pay") -> Execution:
    execution = queued(gate, tool)
    claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    return execution


def requeued(gate: Gate, tool: str = "pay") -> Execution:
    """Tried once, known to have changed nothing, and due again in a moment."""
    execution = claimed(gate, tool)
    record.record_outcome(
        execution_id=execution.pk,
        fence=1,
        outcome=EffectOutcome("failed", code="not_sent", this_attempt_only=True),
        actor=claims.EXECUTOR_ACTOR,
    )
    execution.refresh_from_db()
    assert (execution.status, execution.grant.status) == ("queued", "spent")
    return execution


def succeeded(gate: Gate) -> Execution:
    return _ran(queued(gate))


def failed(gate: Gate) -> Execution:
    return _ran(queued(gate, "decline"))


def unknown(gate: Gate) -> Execution:
    execution = claimed(gate, "pay_opaque")
    factories.lapsed(execution)
    return _ran(execution)


def refused(gate: Gate) -> Execution:
    execution = queued(gate)
    stops.create_stop(
        scope=Scope.TOOL, key="pay", person=gate.sue, reason="wrong payee"
    )
    return _ran(execution)


def _ran(execution: Execution) -> Execution:
    run.run_execution(execution.pk)
    return execution


def live(gate: Gate) -> Grant:
    return queued(gate).grant


def spent(gate: Gate) -> Grant:
    return claimed(gate).grant


def lapsed_grant(gate: Gate) -> Grant:
    execution = queued(gate)
    past = clock.now() - timedelta(seconds=1)
    Grant.objects.filter(pk=execution.grant_id).update(expires_at=past)
    return _ran(execution).grant


def revoked(gate: Gate) -> Grant:
    execution = queued(gate)
    withdraw(gate.agent, execution.proposal)
    return execution.grant


def running(gate: Gate) -> Thread:
    propose(gate.agent)
    return Thread.objects.get()


def finished(gate: Gate) -> Thread:
    thread = running(gate)
    proposals.finish_thread(
        agent=gate.agent, name=thread.name, result=ThreadResult.COMPLETED
    )
    return thread


def draft(gate: Gate) -> PolicyVersion:
    return versions.save_draft(
        text_or_mapping=factories.document_of_tests(), author=gate.adam
    )


def active(gate: Gate) -> PolicyVersion:
    return gate.policy


def retired(gate: Gate) -> PolicyVersion:
    factories.policy(gate.people)
    return gate.policy


def refused_draft(gate: Gate) -> PolicyVersion:
    row = draft(gate)
    by = gate.adam if row.author_id != gate.adam.pk else gate.alma
    return versions.refuse_draft(version_id=row.pk, by=by, reason="odd")


def forming_batch(gate: Gate) -> Batch:
    return batching.formed(gate)


def open_batch(gate: Gate) -> Batch:
    batch = batching.formed(gate)
    Batch.objects.filter(pk=batch.pk).update(closes_at=clock.now())
    formation.tidy_batch(batch_id=batch.pk)
    return batch


def decided_batch(gate: Gate) -> Batch:
    return batching.decide(batching.formed(gate), gate.rita)


def dissolved_batch(gate: Gate) -> Batch:
    batch = batching.formed(gate, "7.00", "8.00")
    decide(batching.members(batch)[0].request, gate.rita)
    formation.tidy_batch(batch_id=batch.pk)
    return batch


def open_alarm(gate: Gate) -> Alarm:
    lapsed_grant(gate)
    return Alarm.objects.get()


def acknowledged_alarm(gate: Gate) -> Alarm:
    alarm = open_alarm(gate)
    return standing.acknowledge_alarm(alarm_id=alarm.pk, person=gate.sue)


def closed_alarm(gate: Gate) -> Alarm:
    alarm = open_alarm(gate)
    return standing.close_alarm(alarm_id=alarm.pk, person=gate.sue, note="asked again")


def abandon(execution: Execution) -> Execution:
    """Move a lease so far into the past that people may repair the execution."""
    lease = clock.now() - timedelta(minutes=6)
    Execution.objects.filter(pk=execution.pk).update(lease_until=lease)
    return execution


def proposed_repair(gate: Gate) -> Repair:
    return repair_of(claimed(gate), gate)


def repair_of(execution: Execution, gate: Gate) -> Repair:
    """What a supervisor proposes once whoever had taken it is gone."""
    return repairs.propose_repair(
        execution_id=abandon(execution).pk,
        change=RepairChange.SAY_UNKNOWN,
        person=gate.sue,
        reason="its worker is gone",
    )


def applied_repair(gate: Gate) -> Repair:
    repair = proposed_repair(gate)
    return repairs.confirm_repair(repair_id=repair.pk, person=gate.adam)


def refused_repair(gate: Gate) -> Repair:
    repair = proposed_repair(gate)
    answer = "it is only slow"
    return repairs.refuse_repair(repair_id=repair.pk, person=gate.adam, answer=answer)


def lapsed_repair(gate: Gate) -> Repair:
    repair = proposed_repair(gate)
    worlds.rewrite(Repair, repair.pk, lapses_at=clock.now())
    repairs.lapse_repairs()
    return repair


# Machine -> its model's table, and how each of its statuses is reached.
REQUESTS: dict[str, Reach] = {
    "pending": pending,
    "recallable": recallable,
    "authorized": authorized,
    "rejected": rejected,
    "expired": expired,
    "withdrawn": withdrawn,
    "superseded": superseded,
}
GRANTS: dict[str, Reach] = {
    "live": live,
    "spent": spent,
    "expired": lapsed_grant,
    "revoked": revoked,
}
EXECUTIONS: dict[str, Reach] = {
    "queued": queued,
    "claimed": claimed,
    "succeeded": succeeded,
    "failed": failed,
    "unknown": unknown,
    "refused": refused,
}
BATCHES: dict[str, Reach] = {
    "forming": forming_batch,
    "open": open_batch,
    "decided": decided_batch,
    "dissolved": dissolved_batch,
}
THREADS: dict[str, Reach] = {"running": running, "finished": finished}
POLICIES: dict[str, Reach] = {
    "draft": draft,
    "active": active,
    "retired": retired,
    "refused": refused_draft,
}

ALARMS: dict[str, Reach] = {
    "open": open_alarm,
    "acknowledged": acknowledged_alarm,
    "closed": closed_alarm,
}
REPAIRS: dict[str, Reach] = {
    "proposed": proposed_repair,
    "applied": applied_repair,
    "refused": refused_repair,
    "lapsed": lapsed_repair,
}
REACHED: list[tuple[Machine, type[Any], dict[str, Reach]]] = [
    (transitions.request, ApprovalRequest, REQUESTS),
    (transitions.grant, Grant, GRANTS),
    (transitions.execution, Execution, EXECUTIONS),
    (transitions.batch, Batch, BATCHES),
    (transitions.alarm, Alarm, ALARMS),
    (transitions.repair, Repair, REPAIRS),
    (agents_transitions.thread, Thread, THREADS),
    (versions.machine, PolicyVersion, POLICIES),
]


def paired(machine: Machine, row: Any, status: str) -> dict[str, Any]:
    """The columns that a row of this status must have beside it."""
    now = clock.now()
    if machine is transitions.request:
        settled = status in set(SETTLED)
        return {
            "settled_at": now if settled else None,
            "recall_until": now if status == "recallable" else None,
        }
    if machine is transitions.execution:
        return {
            "lease_until": now if status == "claimed" else None,
            "finished_at": now if status in FINISHED else None,
        }
    if machine is transitions.alarm:
        return _paired_alarm(row, status)
    if machine is transitions.repair:
        ended = status != "proposed" or row.settled_at is not None
        return {
            "settled_at": (row.settled_at or now) if ended else None,  # written once
            "settled_by": "u-another" if ended else "",
        }
    if machine is transitions.batch:
        return {"settled_at": now if status in {"decided", "dissolved"} else None}
    if machine is agents_transitions.thread:
        over_now = status == "finished"
        return {
            "finished_at": now if over_now else None,
            "result": "completed" if over_now else "",
        }
    if machine is versions.machine and row.activated_by_id is None:
        return _paired_policy(row, status)
    return {}


def _paired_policy(row: Any, status: str) -> dict[str, Any]:
    now, person = clock.now(), Person.objects.exclude(pk=row.author_id).first()
    by = person.pk if person else None
    if status == "refused":
        return {"refused_by_id": by, "refused_at": now, "refusal": "odd"}
    in_force = status != "draft"
    return {
        "activated_by_id": by if in_force else None,
        "activated_at": now if in_force else None,
    }


def _paired_alarm(row: Any, status: str) -> dict[str, Any]:
    now, people = clock.now(), Person.objects.order_by("pk")
    looks = people[0].pk if status == "acknowledged" else None
    seen = row.acknowledged_by_id or looks
    closed = status == "closed"
    return {
        "acknowledged_by_id": seen,
        "acknowledged_at": (row.acknowledged_at or now) if seen else None,
        "closed_by_id": people[0].pk if closed else None,
        "closed_at": now if closed else None,
        "closed_how": "person" if closed else "",
        "note": "looked" if closed else "",
    }

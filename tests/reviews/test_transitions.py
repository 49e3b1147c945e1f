"""Every status by every event, at the tables and at the operations [I3]. The database's
own guards: models/test_constraints.py."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction

from journal import canonical, clock, errors, log, outbox
from journal.models import LogRecord, OutboxMessage
from journal.state_machine import NO_SOURCE, Machine
from journal.writes import Guard
from policies import versions
from policies.models import PolicyVersion
from reviews import deadlines, transitions
from reviews.choices import RequestStatus
from reviews.decisions import recall
from reviews.executions import claims, rechecks, settle
from reviews.executions import record as executions
from reviews.models import (
    ApprovalRequest,
    Decision,
    Execution,
    Grant,
    Proposal,
    RequestVersion,
    Revision,
)
from reviews.tool_services.executors import EffectOutcome
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states
from tests.reviews.states import REACHED, Reach, paired

ACTOR = log.Actor("system", "test")
PLACES = [
    pytest.param(machine, model, status, reach, id=f"{machine.name}-{status}")
    for machine, model, reached in REACHED
    for status, reach in reached.items()
]
MACHINES = [pytest.param(*found, id=found[0].name) for found in REACHED]


def events(machine: Machine) -> list[str]:
    return sorted({edge.event for edge in machine.edges})


def everything() -> list[Any]:
    """All that a step could have changed: every row, the log and the outbox."""
    models: list[type[Any]] = [Proposal, Revision, RequestVersion, Decision]
    models += [LogRecord, OutboxMessage, *(model for _, model, _ in REACHED)]
    return [list(model.objects.order_by("pk").values()) for model in models]


@contextmanager
def undone():
    """Whatever happens inside is taken back. A savepoint, so that durable operations
    still believe to be outermost."""
    mark = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(mark)


@pytest.mark.parametrize(("machine", "model", "reached"), MACHINES)
def test_every_status_is_reached_by_operations(
    machine: Machine, model: type[Any], reached: dict[str, Reach]
) -> None:
    words = {str(value) for value, _ in model._meta.get_field("status").choices}
    assert set(reached) == words
    assert {edge.target for edge in machine.edges} == words


@pytest.mark.parametrize(("machine", "model", "status", "reach"), PLACES)
def test_legal_events_move_the_row_and_all_others_change_nothing(
    gate: Gate, machine: Machine, model: type[Any], status: str, reach: Reach
) -> None:
    row = model.objects.get(pk=reach(gate).pk)
    assert row.status == status
    before = everything()
    for event in events(machine):
        with undone():
            edge = machine.table.get((status, event))
            fresh = model.objects.get(pk=row.pk)
            if edge is None:
                refuses(machine, fresh, event)
                assert everything() == before, f"{event} left a trace"
            else:
                moves(machine, fresh, event)


def refuses(machine: Machine, row: Any, event: str) -> None:
    with pytest.raises(errors.IllegalTransition) as refused:
        machine.apply(row, event, actor=ACTOR, now=clock.now())
    assert (refused.value.status, refused.value.code) == (409, "conflict")


def moves(machine: Machine, row: Any, event: str) -> None:
    """The row, one log record that names both statuses, and its outbox rows."""
    edge = machine.table[(str(row.status), event)]
    if edge.target == "active":  # one policy at a time
        versions.machine.apply(row_in_force(), "retire", actor=ACTOR, now=clock.now())
    last = LogRecord.objects.order_by("pk").last()
    sent = OutboxMessage.objects.count()
    changes = paired(machine, row, edge.target)
    machine.apply(row, event, actor=ACTOR, now=clock.now(), changes=changes)
    row.refresh_from_db()
    assert row.status == edge.target
    record = LogRecord.objects.filter(pk__gt=last.pk if last else 0).get()
    leaf = canonical.parse(bytes(record.leaf))
    assert record.kind == edge.logged_as
    assert (leaf["from"], leaf["to"]) == (edge.source, edge.target)
    told = settings.OUTBOX_ROUTES[edge.published_as] if edge.published_as else ()
    assert OutboxMessage.objects.count() - sent == len(told)


def row_in_force() -> PolicyVersion:
    return PolicyVersion.objects.get(status="active")


@pytest.mark.parametrize(("machine", "model", "reached"), MACHINES)
def test_a_row_begins_by_a_first_event_only(
    gate: Gate, machine: Machine, model: type[Any], reached: dict[str, Reach]
) -> None:
    row = next(iter(reached.values()))(gate)
    before = everything()
    first = {edge.event for edge in machine.edges if edge.source == NO_SOURCE}
    assert len(first) == (2 if "plant" in first else 1)
    for event in set(events(machine)) - first:
        with pytest.raises(errors.IllegalTransition):
            machine.create(row, event, actor=ACTOR, now=clock.now())
    assert everything() == before


@pytest.mark.parametrize(("machine", "model", "status", "reach"), PLACES)
def test_a_row_that_moved_meanwhile_is_a_conflict(
    gate: Gate, machine: Machine, model: type[Any], status: str, reach: Reach
) -> None:
    """Whoever read an older status writes nothing: the update is guarded by it."""
    row = model.objects.get(pk=reach(gate).pk)
    before = everything()
    for edge in machine.edges:
        if edge.source in {NO_SOURCE, status}:
            continue
        row.status = edge.source  # as it would have been read a moment ago
        with pytest.raises(errors.Conflict):
            machine.apply(row, edge.event, actor=ACTOR, now=clock.now())
        with pytest.raises(errors.Conflict):
            machine.apply_many([row], edge.event, actor=ACTOR, now=clock.now())
    assert everything() == before


def test_many_move_as_one_does_each_with_its_record_or_none_of_them(
    gate: Gate,
) -> None:
    rows = [states.pending(gate, f"t-{n}") for n in range(3)]
    last = LogRecord.objects.latest("pk").pk
    move(rows, "hold", recall_until=clock.now())
    records = LogRecord.objects.filter(pk__gt=last).order_by("pk")
    leaves = [canonical.parse(bytes(record.leaf)) for record in records]
    assert [leaf["request"] for leaf in leaves] == [row.pk for row in rows]
    assert [leaf["data"] for leaf in leaves] == [said_of(row)["data"] for row in rows]
    ApprovalRequest.objects.filter(pk=rows[1].pk).update(version=9)
    before = everything()
    with pytest.raises(errors.Conflict), transaction.atomic():
        move(rows, "recall", recall_until=None)
    assert everything() == before


def move(rows: list[ApprovalRequest], event: str, **changes: Any) -> None:
    transitions.request.apply_many(
        rows,
        event,
        actor=ACTOR,
        now=clock.now(),
        changes=changes,
        guard=Guard(same=("version",)),
        each=said_of,
    )


def said_of(row: ApprovalRequest) -> dict[str, Any]:
    return {"data": {"of": row.proposal_id}}


def test_without_its_record_nothing_is_changed(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I26: what cannot write its log record or its outbox row does not happen."""
    request = states.pending(gate)
    before = everything()
    for module, name in [(log, "_build_row"), (outbox, "publish_many")]:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, broken)
            with pytest.raises(ZeroDivisionError):
                decide(request, gate.rita)
            with pytest.raises(ZeroDivisionError):
                propose(gate.agent, customer="C-2")
        assert everything() == before


def broken(*args: Any, **kwargs: Any) -> None:
    raise ZeroDivisionError


# What people, agents and timers can do to a request, and where that leads from each
# status. Whatever is not listed is refused, or for a timer does nothing.
Operation = Callable[[Gate, ApprovalRequest], Any]
OTHER = {"customer": "C-1", "amount": "20.00", "currency": "USD"}


def expire(gate: Gate, request: ApprovalRequest) -> None:
    if request.status == RequestStatus.PENDING:
        factories.overdue(request)
    deadlines.expire_chunk()


def close(gate: Gate, request: ApprovalRequest) -> None:
    open_now = ApprovalRequest.objects.filter(pk=request.pk, recall_until__isnull=False)
    open_now.update(recall_until=request.opened_at)
    deadlines.close_recall_windows()


REQUEST_OPERATIONS: dict[str, Operation] = {
    "approve": lambda gate, request: decide(request, gate.tom),
    "reject": lambda gate, request: decide(request, gate.tom, "reject"),
    "escalate": lambda gate, request: decide(request, gate.tom, "escalate"),
    "modify": lambda gate, request: decide(request, gate.tom, "modify", args=OTHER),
    "recall": lambda gate, request: recall.recall_approval(
        request_id=request.pk, person=gate.sue
    ),
    "revise": lambda gate, request: factories.revise(gate.agent, request.proposal),
    "withdraw": lambda gate, request: states.withdraw(gate.agent, request.proposal),
    "supersede": lambda gate, request: propose(
        gate.agent, supersedes=request.proposal_id
    ),
    "expire": expire,
    "close": close,
}
REQUEST_STEPS = {
    ("pending", "approve"): "authorized",
    ("pending", "reject"): "rejected",
    ("pending", "escalate"): "pending",
    ("pending", "modify"): "authorized",
    ("pending", "revise"): "pending",
    ("pending", "withdraw"): "withdrawn",
    ("pending", "supersede"): "superseded",
    ("pending", "expire"): "expired",
    ("recallable", "reject"): "rejected",
    ("recallable", "recall"): "pending",
    ("recallable", "revise"): "pending",
    ("recallable", "withdraw"): "withdrawn",
    ("recallable", "close"): "authorized",
    ("authorized", "withdraw"): "authorized",  # its grant is revoked instead
}
TIMERS = {"expire", "close"}
# What changes nothing when it is asked for again.
REPEATED = {("withdrawn", "withdraw")}


def rows() -> list[Any]:
    """The gate's rows. A refusal is a log record, so the log may differ."""
    models = (Proposal, Revision, ApprovalRequest, RequestVersion, Decision)
    return [
        list(m.objects.order_by("pk").values()) for m in (*models, Grant, Execution)
    ]


@pytest.mark.parametrize("status", states.REQUESTS)
def test_every_operation_in_every_status_of_a_request(gate: Gate, status: str) -> None:
    request = ApprovalRequest.objects.get(pk=states.REQUESTS[status](gate).pk)
    before = rows()
    for name, operation in REQUEST_OPERATIONS.items():
        with undone():
            fresh = ApprovalRequest.objects.get(pk=request.pk)
            target = REQUEST_STEPS.get((status, name))
            if target is not None:
                operation(gate, fresh)
                fresh.refresh_from_db()
                assert fresh.status == target, name
                assert rows() != before, name
            elif name in TIMERS or (status, name) in REPEATED:
                operation(gate, fresh)
                assert rows() == before, name
            else:
                with pytest.raises(errors.DomainError) as refused:
                    operation(gate, fresh)
                assert refused.value.status in {403, 404, 409, 410}, name
                assert rows() == before, name


def fence_of(execution: Execution) -> int:
    return int(Execution.objects.get(pk=execution.pk).fence)


EXECUTION_OPERATIONS: dict[str, Callable[[Gate, Execution], Any]] = {
    "take": lambda gate, execution: claims.claim_execution(
        execution_id=execution.pk, actor=log.SYSTEM
    ),
    "record": lambda gate, execution: executions.record_outcome(
        execution_id=execution.pk,
        fence=fence_of(execution),
        outcome=EffectOutcome("succeeded", {}),
        actor=log.SYSTEM,
    ),
    "refuse": lambda gate, execution: executions.record_refusal(
        execution_id=execution.pk,
        fence=fence_of(execution),
        refusal=rechecks.Refusal("stopped", "for a test"),
    ),
    "settle": lambda gate, execution: settle.settle_unknown(
        execution_id=execution.pk, person=gate.sue, happened=True, reason="seen"
    ),
    "retry": lambda gate, execution: settle.retry_execution(
        execution_id=execution.pk, person=gate.sue
    ),
    "withdraw": lambda gate, execution: states.withdraw(gate.agent, execution.proposal),
}
EXECUTION_STEPS = {
    ("queued", "take"): "claimed",
    ("queued", "withdraw"): "refused",
    ("claimed", "record"): "succeeded",
    ("claimed", "refuse"): "refused",
    ("unknown", "settle"): "succeeded",
    ("failed", "retry"): "queued",
}


@pytest.mark.parametrize("status", states.EXECUTIONS)
def test_every_operation_in_every_status_of_an_execution(
    gate: Gate, status: str
) -> None:
    execution = Execution.objects.get(pk=states.EXECUTIONS[status](gate).pk)
    before = rows()
    for name, operation in EXECUTION_OPERATIONS.items():
        with undone():
            target = EXECUTION_STEPS.get((status, name))
            if target is not None:
                operation(gate, execution)
                after = Execution.objects.get(pk=execution.pk)
                assert after.status == target, name
                continue
            if name == "take":  # nothing to claim is an answer, not a refusal
                assert operation(gate, execution) is None
            else:
                with pytest.raises(errors.DomainError) as refused:
                    operation(gate, execution)
                assert refused.value.status in {403, 404, 409, 410}, name
            assert rows() == before, name

"""The database backs every machine: whoever skips the code, by SQL of their own, meets
the same edges, pairs and immutable rows [I2, I3]."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import Model
from psycopg import sql

from agents import transitions as agents_transitions
from agents.models import Checkpoint, IdempotencyKey
from journal.state_machine import Machine
from policies import versions
from policies.models import Person, Tool
from reviews import transitions
from reviews.choices import Scope
from reviews.models import (
    Decision,
    Message,
    RequestVersion,
    Revision,
    Stop,
)
from reviews.stops import stops
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews import states
from tests.reviews.dialogue.talking import ask
from tests.reviews.states import REACHED, Reach, paired

PLACES = [
    pytest.param(machine, model, status, reach, id=f"{machine.name}-{status}")
    for machine, model, reached in REACHED
    for status, reach in reached.items()
]
REVIEWS = importlib.import_module("reviews.migrations.0002_triggers")
AGENTS = importlib.import_module("agents.migrations.0002_triggers")
POLICIES = importlib.import_module("policies.migrations.0007_refused_drafts")
BACKED = [
    (transitions.request, REVIEWS.REQUEST),
    (transitions.grant, REVIEWS.GRANT),
    (transitions.execution, REVIEWS.EXECUTION),
    (agents_transitions.thread, AGENTS.THREAD),
    (versions.machine, POLICIES.POLICY),
    (transitions.batch, REVIEWS.BATCH),
    (transitions.alarm, REVIEWS.ALARM),
    (transitions.repair, REVIEWS.REPAIR),
]
NAMES = [machine.name for machine, _, _ in REACHED]


def steps(machine: Machine) -> set[tuple[str, str]]:
    """Where a row may go; staying where it is needs no leave."""
    pairs = {(edge.source, edge.target) for edge in machine.edges}
    return {(str(a), str(b)) for a, b in pairs if a != b}


def run(statement: sql.Composable | str, *values: Any) -> str:
    """What the database says against a statement; "" when it lets it pass."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement, values)
            transaction.set_rollback(True)
    except DatabaseError as error:
        return str(error)
    return ""


def table_and_key(row: Model) -> tuple[sql.Identifier, sql.Identifier]:
    key = row._meta.pk.column
    assert key is not None
    return sql.Identifier(row._meta.db_table), sql.Identifier(key)


def update(row: Model, **values: Any) -> str:
    columns = [sql.SQL("{} = %s").format(sql.Identifier(name)) for name in values]
    table, key = table_and_key(row)
    statement = sql.SQL("UPDATE {} SET {} WHERE {} = %s").format(
        table, sql.SQL(", ").join(columns), key
    )
    return run(statement, *values.values(), row.pk)


def insert_copy(row: Model, **values: Any) -> str:
    """The same row once more, with other values in some columns."""
    table, key = table_and_key(row)
    statement = sql.SQL(
        "INSERT INTO {t} SELECT (jsonb_populate_record(x, %s::jsonb)).*"
        " FROM {t} AS x WHERE {pk} = %s"
    ).format(t=table, pk=key)
    return run(statement, json.dumps(values), row.pk)


@pytest.mark.parametrize(
    ("machine", "listed"), BACKED, ids=lambda one: getattr(one, "name", "")
)
def test_the_triggers_edges_are_the_tables_edges(
    machine: Machine, listed: list[tuple[str, str]]
) -> None:
    assert set(listed) == steps(machine)


def test_every_machine_is_backed() -> None:
    assert {m.name for m, _ in BACKED} == {m.name for m, _, _ in REACHED}


@pytest.mark.parametrize(("machine", "model", "status", "reach"), PLACES)
def test_the_database_refuses_every_step_that_is_no_edge(
    gate: Gate, machine: Machine, model: type[Any], status: str, reach: Reach
) -> None:
    row = model.objects.get(pk=reach(gate).pk)
    words = {edge.target for edge in machine.edges}
    for target in {*words, "nonsense", ""} - {status}:
        said = update(row, status=target, **paired(machine, row, target))
        if (status, target) in steps(machine):
            assert "no step from" not in said, target
        else:
            assert f"no step from {status} to {target}" in said


@pytest.mark.parametrize(("machine", "model", "reached"), REACHED, ids=NAMES)
def test_the_database_refuses_a_row_that_begins_elsewhere(
    gate: Gate, machine: Machine, model: type[Any], reached: dict[str, Reach]
) -> None:
    row = next(iter(reached.values()))(gate)
    first = {str(b) for a, b in steps(machine) if a == ""}
    other = 987654 if isinstance(row.pk, int) else "copy"
    for status in {*reached, "nonsense"}:
        said = insert_copy(row, id=other, status=status)
        assert ("no step from  to" in said) == (status not in first), status


PAIRS = [
    ("request_settled_paired", states.pending, {"settled_at": "now"}),
    ("request_settled_paired", states.rejected, {"settled_at": None}),
    ("request_recall_paired", states.pending, {"recall_until": "now"}),
    ("request_recall_paired", states.recallable, {"recall_until": None}),
    ("request_deadline_bounded", states.pending, {"expires_at": "infinity"}),
    ("execution_lease_paired", states.queued, {"lease_until": "now"}),
    ("execution_lease_paired", states.claimed, {"lease_until": None}),
    ("execution_finish_paired", states.queued, {"finished_at": "now"}),
    ("execution_finish_paired", states.succeeded, {"finished_at": None}),
    ("execution_finish_paired", states.unknown, {"finished_at": "now"}),
    ("thread_finish_paired", states.running, {"finished_at": "now"}),
    ("thread_finish_paired", states.running, {"result": "failed"}),
    ("thread_finish_paired", states.finished, {"result": ""}),
    ("policy_activation_paired", states.draft, {"activated_at": "now"}),
    ("hold_lost_paired", states.held, {"lost_at": "now"}),
    ("hold_lost_paired", states.held, {"lost_how": "broken"}),
]


@pytest.mark.parametrize(("constraint", "reach", "values"), PAIRS)
def test_paired_columns_keep_together(
    gate: Gate, constraint: str, reach: Reach, values: dict[str, Any]
) -> None:
    assert constraint in update(reach(gate), **values)


def stopped(gate: Gate) -> Stop:
    return stops.create_stop(
        scope=Scope.TOOL, key="pay", person=gate.sue, reason="halt"
    )


def decision(gate: Gate) -> Decision:
    return Decision.objects.get(request=states.authorized(gate))


def message(gate: Gate) -> Message:
    return ask(states.pending(gate), gate.rita)


def checkpoint(gate: Gate) -> Checkpoint:
    propose(gate.agent, checkpoint={"summary": "waits"})
    return Checkpoint.objects.get()


def key(gate: Gate) -> IdempotencyKey:
    propose(gate.agent)
    return IdempotencyKey.objects.get()


def person(gate: Gate) -> Person:
    return gate.rita


# An id that no sequence of the tests' database reaches.
UNUSED = 2_000_000_000

OTHERS = [
    ("decision_step_paired", decision, {"id": UNUSED, "step": None}),
    ("decision_verdict", decision, {"id": UNUSED, "verdict": "perhaps"}),
    ("decision_once", decision, {"id": UNUSED}),
    (
        "revision_number",
        lambda gate: states.pending(gate).sealed.revision,
        {"id": UNUSED},
    ),
    (
        "request_version_number",
        lambda gate: states.pending(gate).sealed,
        {"id": UNUSED},
    ),
    ("reviews_approvalrequest_proposal_id", states.pending, {"id": "r-2"}),
    ("reviews_grant_revision_id", states.live, {"id": "g-2"}),
    ("reviews_execution", states.queued, {"id": "x-2", "idempotency_key": "other"}),
    (
        "reviews_execution_idempotency_key",
        states.queued,
        {"id": "x-2", "grant_id": "other"},
    ),
    ("stop_one_in_force", stopped, {"id": UNUSED}),
    ("stop_lift_paired", stopped, {"id": UNUSED, "key": "other", "lifted_by": "u-1"}),
    ("stop_scope", stopped, {"id": UNUSED, "scope": "planet"}),
    ("stop_mode", stopped, {"id": UNUSED, "mode": "maybe"}),
    ("thread_name", states.running, {"id": UNUSED}),
    ("checkpoint_number", checkpoint, {"id": UNUSED}),
    ("idempotency_once", key, {"id": UNUSED}),
    (
        "tool_version",
        lambda gate: Tool.objects.first(),
        {"id": UNUSED, "digest": "other"},
    ),
]


@pytest.mark.parametrize(("constraint", "reach", "values"), OTHERS)
def test_there_is_one_of_what_must_be_one(
    gate: Gate, constraint: str, reach: Reach, values: dict[str, Any]
) -> None:
    assert constraint in insert_copy(reach(gate), **values)


def test_two_policies_never_rule_at_once(gate: Gate) -> None:
    draft = states.draft(gate)
    in_force = {"status": "active", "activated_at": "now"}
    said = update(draft, activated_by_id=gate.alma.pk, **in_force)
    assert "policy_one_active" in said
    said = update(draft, activated_by_id=gate.adam.pk, **in_force)
    assert "policy_needs_two_people" in said


def test_a_persons_ceiling_has_a_currency(gate: Gate) -> None:
    assert "person_ceiling_paired" in update(gate.rita, ceiling_minor=5)


def sealed(gate: Gate) -> RequestVersion:
    return states.pending(gate).sealed


def revision(gate: Gate) -> Revision:
    return states.pending(gate).sealed.revision


def tool(gate: Gate) -> Tool:
    return Tool.objects.get(name="pay")


# A refusal stands beside the status: `policy_refusal_paired`.
REFUSABLE = frozenset({"status", "refused_by_id", "refused_at", "refusal"})
IMMUTABLE: list[tuple[Reach, frozenset[str]]] = [
    (revision, frozenset()),
    (sealed, frozenset()),
    (decision, frozenset()),
    (message, frozenset()),
    (tool, frozenset()),
    (states.active, REFUSABLE),
    (states.retired, REFUSABLE),
    (checkpoint, frozenset({"blob"})),
]

KEPT = [
    "revision",
    "requestversion",
    "decision",
    "snapshot",
    "note",
    "message",
    "statereading",
]


@pytest.mark.parametrize(("reach", "free"), IMMUTABLE)
def test_rows_that_never_change_refuse_every_column_and_their_removal(
    gate: Gate, reach: Reach, free: frozenset[str]
) -> None:
    row = reach(gate)
    columns = {field.column: field for field in row._meta.concrete_fields}
    for name in set(columns) - free:
        assert "never change" in update(row, **{name: other_than(columns[name])}), name
    table, _ = table_and_key(row)
    assert "never change" in run(sql.SQL("DELETE FROM {}").format(table))


@pytest.mark.django_db
def test_no_table_of_rows_that_never_change_is_emptied() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgrelid::regclass::text FROM pg_trigger"
            " WHERE tgname LIKE '%_immutable'"
        )
        tables = {table for (table,) in cursor.fetchall()}
    assert {f"reviews_{name}" for name in KEPT} <= tables
    for table in tables:
        name = sql.Identifier(table)
        said = run(sql.SQL("TRUNCATE {} CASCADE").format(name))
        assert f"{table} rows never change" in said


def other_than(field: Any) -> Any:
    """A value that no row of a test has in this column."""
    kind = field.get_internal_type()
    return {
        "JSONField": '{"other": true}',
        "BinaryField": b"other",
        "BooleanField": None,
        "DateTimeField": "infinity",
        "ArrayField": ["other"],
        "CharField": "XXX",
        "TextField": "other",
    }.get(kind, 4242)


def test_a_draft_may_be_put_in_force_once(gate: Gate) -> None:
    """Who activated a policy, and when, is written one time."""
    later = {"activated_by_id": gate.adam.pk}
    assert "never change" in update(gate.policy, **later)
    assert "never change" in update(gate.policy, activated_at=None)

"""A stop after the claim and before the effect means no effect: for every kind of
executor, every class of execution, every scope, and wherever between the two it comes,
the last moment included [I24]."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from pytest_django import Settings

from hitl import tasks
from journal import errors, log
from journal.models import OutboxMessage
from reviews.choices import ExecutionStatus, Scope, StopMode
from reviews.executions import claims, leases, rechecks, redeem, run
from reviews.grants import tokens
from reviews.models import Execution, Stop
from reviews.stops import stops
from reviews.tool_services import readers, verifiers
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.races.together import before, elsewhere
from tests.reviews import service
from tests.reviews.service import Service

pytestmark = [pytest.mark.django_db(transaction=True)]

TOOLS = {"keyed": "pay", "queryable": "pay_queryable", "opaque": "pay_opaque"}
PLACES = {
    "before-the-checks": (rechecks, "find_refusal"),
    "while-the-world-is-read": (readers, "read_state"),
    "while-verifiers-are-asked": (verifiers, "run_verifiers"),
    "while-the-note-is-written": (leases, "record_outside_database"),
    "while-the-fence-is-looked-at": (leases, "begin_attempt"),
}
SCOPES = [
    (Scope.THREAD, "riley/t-1", "sue"),
    (Scope.AGENT, "riley", "sue"),
    (Scope.TOOL, "", "sue"),
    (Scope.EVERYTHING, "", "adam"),
]


@pytest.fixture
def outside(settings: Settings) -> Iterator[Service]:
    """The tool's own service, on an address that effects may reach."""
    networks = {"webhook_networks": [factories.LOOPBACK]}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=networks)
    with service.running() as found:
        yield found


def tools(gate: Gate, outside: Service, kind: str) -> None:
    """Each class by this kind of executor, all with a reader and a verifier."""
    document = factories.document_of_tests()
    rule = {"kind": "callable", "path": "reviews.verifier_rules.required_fields"}
    asked = [{**rule, "options": {"fields": ["amount"]}}]
    pay = document["tools"]["pay"]
    for name in [*TOOLS.values(), "deploy"]:
        tool = document["tools"][name]
        tool["verifiers"] = [] if name == "deploy" else asked
        tool |= {one: pay[one] for one in ("reader", "preconditions")}
        if kind == "webhook" and name != "deploy":
            tool["executor"] = {"kind": "webhook", "url": outside.url}
    factories.policy(gate.people, document)


def queued(gate: Gate, tool: str) -> Execution:
    request = propose(gate.agent, tool).request
    people = [gate.sue, gate.sam] if tool == "deploy" else [gate.rita]
    for person in people:
        decide(request, person)
    return Execution.objects.get(proposal=request.proposal_id)


def stopping(gate: Gate, scope: Scope, key: str, by: str, tool: str) -> partial[Any]:
    key = tool if scope is Scope.TOOL else key
    return partial(
        stops.create_stop, scope=scope, key=key, person=gate.people[by], reason="halt"
    )


@pytest.mark.parametrize("kind", ["callable", "webhook"])
@pytest.mark.parametrize("place", PLACES)
def test_a_stop_after_the_claim_means_no_effect(
    gate: Gate,
    outside: Service,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    place: str,
) -> None:
    """Each class under a scope of its own; the scopes take turns over the places."""
    tools(gate, outside, kind)
    for turn, tool in enumerate(TOOLS.values(), list(PLACES).index(place)):
        execution = queued(gate, tool)
        stop = stopping(gate, *SCOPES[turn % len(SCOPES)], tool)
        with monkeypatch.context() as patch:
            rival = before(patch, *PLACES[place], stop)
            run.run_execution(execution.pk)
        row = rival.result.value
        execution.refresh_from_db()
        assert (execution.status, execution.code) == ("refused", "stopped")
        elsewhere(partial(lifted, gate, row.pk))
    assert worlds.effects() == []
    assert outside.requests == []


def lifted(gate: Gate, stop_id: int) -> None:
    for name in ("sue", "alma"):
        if Stop.objects.filter(pk=stop_id, lifted_at=None).exists():
            stops.lift_stop(stop_id=stop_id, person=gate.people[name], reason="fine")


@pytest.mark.parametrize("tool", TOOLS.values())
def test_a_pause_after_the_claim_keeps_it_for_later(
    gate: Gate, outside: Service, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    tools(gate, outside, "webhook")
    execution = queued(gate, tool)
    pause = partial(stopping(gate, *SCOPES[1], tool), mode=StopMode.PAUSED)
    rival = before(monkeypatch, leases, "begin_attempt", pause)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.attempts) == (ExecutionStatus.QUEUED, 0)
    assert outside.requests == []
    lifted(gate, rival.result.value.pk)
    Execution.objects.filter(pk=execution.pk).update(due_at=execution.queued_at)
    run.run_execution(execution.pk)
    assert len(outside.requests) == 1


@pytest.mark.parametrize("place", ["before-the-checks", "while-the-world-is-read"])
@pytest.mark.parametrize("scope", SCOPES, ids=lambda one: one[0].value)
def test_an_agent_that_redeems_meanwhile_gets_nothing_to_do(
    gate: Gate,
    outside: Service,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    scope: tuple[Scope, str, str],
) -> None:
    tools(gate, outside, "callable")
    execution = queued(gate, "deploy")
    token = tokens.load_token(execution.grant_id)
    before(monkeypatch, *PLACES[place], stopping(gate, *scope, "deploy"))
    with pytest.raises(errors.AgentStopped):
        redeem.redeem_grant(token=token, agent="riley")
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "stopped")


def test_a_stop_at_the_last_moment_of_a_redeem(
    gate: Gate, outside: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools(gate, outside, "callable")
    execution = queued(gate, "deploy")
    token = tokens.load_token(execution.grant_id)
    stop = stopping(gate, *SCOPES[3], "deploy")
    before(monkeypatch, leases, "record_outside_database", stop)
    with pytest.raises(errors.AgentStopped):
        redeem.redeem_grant(token=token, agent="riley")


def test_a_reviewer_revoked_after_the_claim_means_no_effect(
    gate: Gate, outside: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools(gate, outside, "webhook")
    execution = queued(gate, "pay")
    stop = partial(
        stops.create_stop,
        scope=Scope.REVIEWER,
        key=gate.rita.public_id,
        person=gate.sue,
        reason="stolen",
    )
    before(monkeypatch, rechecks, "find_refusal", stop)
    run.run_execution(execution.pk)
    for message in OutboxMessage.objects.filter(topic="stop.raised", done_at=None):
        tasks.enforce_stop(message.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.REFUSED
    assert outside.requests == []


def test_a_claim_taken_before_the_stop_is_never_begun_after_it(
    gate: Gate, outside: Service
) -> None:
    tools(gate, outside, "webhook")
    execution = queued(gate, "pay")
    claim = claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    assert claim is not None
    stopping(gate, *SCOPES[2], "pay")()
    assert isinstance(run._attempt_effect(claim), rechecks.Refusal)
    assert outside.requests == []

"""I11: what was approved does not run when the authority for it is gone, or when it is
no longer what was approved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from guardian.shortcuts import remove_perm

from agents import representation
from journal import errors
from policies.models import Person, Queue
from reviews.choices import ExecutionStatus, RequestStatus, Scope, StopMode
from reviews.decisions import decide as operations
from reviews.executions import redeem, run
from reviews.models import ApprovalRequest, Execution
from reviews.stops import stops
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.policies.security_key import give_key, offer_passkeys
from tests.reviews.executions.attempts import deployment

Change = Callable[[Gate], None]
MOVED = {"kind": "callable", "path": "tests.worlds.plain"}


def granted(gate: Gate, **fields: Any) -> Execution:
    """A payment that one reviewer has just approved."""
    request = propose(gate.agent, **fields).request
    decide(request, gate.rita)
    return Execution.objects.get(proposal=request.proposal_id)


def escalated(gate: Gate) -> Execution:
    """A payment that two supervisors have approved."""
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue)
    decide(request, gate.sam)
    return Execution.objects.get(proposal=request.proposal_id)


def document(gate: Gate, change: Callable[[dict[str, Any]], Any]) -> None:
    """Another policy in force."""
    found = factories.document_of_tests()
    change(found)
    factories.policy(gate.people, found)


def tool(name: str = "pay", **parts: Any) -> Change:
    def change(gate: Gate) -> None:
        document(gate, lambda found: found["tools"][name].update(parts))

    return change


def rule(**then: Any) -> Change:
    """A rule more, which holds for every payment."""
    text = {"id": "pay.more", "text": "More.", "tools": ["pay"], "when": "true"}

    def change(gate: Gate) -> None:
        document(gate, lambda found: found["rules"].append({**text, "then": then}))

    return change


def person(name: str, **fields: Any) -> Change:
    def change(gate: Gate) -> None:
        Person.objects.filter(pk=gate.people[name].pk).update(**fields)

    return change


def role(name: str, other: str) -> Change:
    def change(gate: Gate) -> None:
        gate.people[name].groups.set([Group.objects.get_or_create(name=other)[0]])

    return change


def dismissed(gate: Gate) -> None:
    remove_perm("policies.decide", gate.rita, Queue.objects.get(name="money"))


def off(scope: Scope, key: str = "", by: str = "adam") -> Change:
    def change(gate: Gate) -> None:
        who = gate.people[by]
        stops.create_stop(scope=scope, key=key, person=who, reason="no")

    return change


def reviewer_off(gate: Gate) -> None:
    off(Scope.REVIEWER, gate.rita.public_id)(gate)


def without_pay(gate: Gate) -> None:
    def drop(found: dict[str, Any]) -> None:
        del found["tools"]["pay"]
        found["measures"].clear()
        found["rules"] = []

    document(gate, drop)


def schema(**properties: Any) -> dict[str, Any]:
    """The schema of a payment, with these properties."""
    found: dict[str, Any] = factories.document_of_tests()["tools"]["pay"]["schema"]
    found["properties"].update(properties)
    return found


SHORT = {"type": "string", "maxLength": 2}

CHANGES: dict[str, tuple[Change, str]] = {
    "a rule asks for more": (rule(tier="escalate"), "policy_tightened"),
    "a rule asks for more people": (
        rule(step={"role": "reviewer", "required": 2}),
        "policy_tightened",
    ),
    "a rule forbids it": (rule(block=True), "policy_tightened"),
    "the tool's floor is higher": (tool(floor="escalate"), "policy_tightened"),
    "the tool is critical": (tool(risk="critical"), "policy_tightened"),
    "the tool is gone": (without_pay, "tool_changed"),
    "the arguments do not fit": (
        tool(schema=schema(customer=SHORT)),
        "tool_changed",
    ),
    "it acts elsewhere": (tool(executor=MOVED), "tool_changed"),
    "it is for another service": (tool(audience="https://b.example"), "tool_changed"),
    "the reviewer has another role": (role("rita", "auditor"), "approver_revoked"),
    "the reviewer has no role": (
        lambda gate: gate.rita.groups.clear(),
        "approver_revoked",
    ),
    "the reviewer left": (person("rita", is_active=False), "approver_revoked"),
    "the reviewer left the queue": (dismissed, "approver_revoked"),
    "the reviewer is stopped": (reviewer_off, "approver_revoked"),
    "the reviewer may decide less": (
        person("rita", ceiling_minor=3999, ceiling_currency="USD"),
        "approver_revoked",
    ),
    "the reviewer may decide another currency": (
        person("rita", ceiling_minor=99999, ceiling_currency="EUR"),
        "approver_revoked",
    ),
    "the agent is stopped": (off(Scope.AGENT, "riley"), "stopped"),
    "the tool is stopped": (off(Scope.TOOL, "pay"), "stopped"),
    "the run is stopped": (off(Scope.THREAD, "riley/t-1", "sue"), "stopped"),
    "everything is stopped": (off(Scope.EVERYTHING), "stopped"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changed_since_the_approval_blocks_the_effect(
    gate: Gate, name: str
) -> None:
    execution = granted(gate)
    change, code = CHANGES[name]
    change(gate)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", code)
    assert worlds.effects() == []


CAUSES: dict[str, tuple[Change, str]] = {
    "a rule asks for more": (rule(tier="escalate"), "pay.more (escalate): More."),
    "a rule asks for more people": (
        rule(step={"role": "reviewer", "required": 2}),
        "pay.more (2 reviewer): More.",
    ),
    "the tool's floor is higher": (tool(floor="escalate"), "tool.floor (escalate)"),
}


@pytest.mark.parametrize("name", CAUSES)
def test_a_refusal_names_what_asks_for_more_to_the_agent_too(
    gate: Gate, name: str
) -> None:
    execution = granted(gate)
    change, cause = CAUSES[name]
    change(gate)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.code == "policy_tightened"
    assert cause in execution.detail
    assert cause in str(representation.build_proposal_json(execution.proposal))


def take_passkeys_alone(gate: Gate, settings: Any) -> None:
    """The policy takes a passkey alone from now on, which everybody has."""
    offer_passkeys(settings)
    for who in (gate.rita, gate.tom, gate.sue, gate.sam):
        give_key(who)
    take_methods(gate, "passkey")


def take_methods(gate: Gate, *methods: str) -> None:
    levels = {level: [*methods] for level in ("low", "medium", "high", "critical")}
    document(gate, lambda found: found.update(desk={"step_up": levels}))


def test_a_vote_by_a_password_does_not_count_once_a_passkey_is_asked(
    gate: Gate, settings: Any
) -> None:
    execution = escalated(gate)
    take_passkeys_alone(gate, settings)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "policy_tightened")
    assert "takes a passkey at this risk" in execution.detail
    assert worlds.effects() == []


def test_one_weak_proof_among_the_votes_is_enough_to_refuse(
    gate: Gate, settings: Any
) -> None:
    request = propose(gate.agent, amount="899.00").request
    decide_by(request, gate.sue, "password")
    take_passkeys_alone(gate, settings)  # between the two votes
    decide_by(request, gate.sam, "passkey")
    execution = Execution.objects.get(proposal=request.proposal_id)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "policy_tightened")


def test_a_proof_that_the_policy_of_now_takes_counts(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    give_key(gate.sue)
    decide_by(request, gate.sue, "passkey")
    decide_by(request, gate.sam, "password")
    execution = Execution.objects.get(proposal=request.proposal_id)
    take_methods(gate, "password", "passkey")
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == "succeeded"


def test_where_no_step_up_is_asked_no_method_is(gate: Gate, settings: Any) -> None:
    request = propose(gate.agent).request
    decide_by(request, gate.rita, "password")  # given, though nobody asked
    execution = Execution.objects.get(proposal=request.proposal_id)
    take_passkeys_alone(gate, settings)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == "succeeded"


def decide_by(request: ApprovalRequest, person: Person, method: str) -> None:
    verdict = factories.said(request, person)
    operations.decide_request(factories.proved(verdict, method))


def test_what_the_new_policy_cannot_read_is_named(gate: Gate) -> None:
    execution = granted(gate)

    def unread(found: dict[str, Any]) -> None:
        found["tools"]["pay"]["facts"] = ["vip"]
        found["rules"].append(
            {"id": "pay.vip", "text": "No.", "tools": ["pay"], "when": "before.vip"}
            | {"then": {"tier": "escalate"}}
        )

    document(gate, unread)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.code == "policy_tightened"
    assert (
        "pay.vip could not be evaluated: before.vip does not exist" in execution.detail
    )


def test_what_asked_nobody_does_not_run_once_people_are_asked(gate: Gate) -> None:
    execution = propose(gate.agent, "look").executions.get()
    tool("look", floor="approve")(gate)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "policy_tightened")
    assert worlds.effects() == []


def measured(name: str, **rule: Any) -> Change:
    """The measure has another name, and nothing else is asked."""

    def change(gate: Gate) -> None:
        def rename(found: dict[str, Any]) -> None:
            found["measures"][name] = found["measures"].pop("paid")
            for one in found["rules"]:
                one["when"] = one["when"].replace(".paid", f".{name}")
            found["rules"] = found["rules"][1:]  # it asks for less

        document(gate, rename)

    return change


def hours(gate: Gate) -> None:
    """A rule of the clock that does not hold reads a calendar that was not there."""
    always = {"zone": "UTC", "open": []}

    def add(found: dict[str, Any]) -> None:
        found["calendars"] = {"desk": always}
        then = {"tier": "escalate"}
        when = "clock.desk_open"
        found["rules"].append(
            {"id": "pay.open", "text": "No.", "tools": ["pay"], "when": when}
            | {"then": then}
        )

    document(gate, add)


def read_more(gate: Gate) -> None:
    """A rule reads what the reader said of nobody's asking until now."""

    def add(found: dict[str, Any]) -> None:
        pay = found["tools"]["pay"]
        pay["facts"] = ["vip"]
        pay["reader"] = {"kind": "callable", "path": f"{__name__}.reads_more"}
        found["rules"].append(
            {"id": "pay.vip", "text": "No.", "tools": ["pay"], "when": "before.vip"}
            | {"then": {"tier": "escalate"}}
        )

    document(gate, add)


def reads_more(args: dict[str, Any]) -> dict[str, Any]:
    return {**worlds.read(args), "facts": {"vip": False}}


SAME: dict[str, Change] = {
    "a measure of another name": measured("paid_a_day"),
    "a calendar more": hours,
    "a fact more of the reader": read_more,
    "words": tool(title="Pay somebody", description="As before."),
    "another time to decide": tool(timeout="10m", window="5m"),
    "another argument that may be given": tool(schema=schema(memo={"type": "string"})),
    "the same policy again": lambda gate: document(gate, lambda _: None),
    "a higher ceiling": person("rita", ceiling_minor=4000, ceiling_currency="USD"),
    "a supervisor by now": role("rita", "supervisor"),
    "another reviewer stopped": lambda gate: off(Scope.REVIEWER, gate.tom.public_id)(
        gate
    ),
    "another tool stopped": off(Scope.TOOL, "deploy"),
}


@pytest.mark.parametrize("name", SAME)
def test_what_takes_no_authority_away_blocks_nothing(gate: Gate, name: str) -> None:
    execution = granted(gate)
    SAME[name](gate)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("succeeded", "")
    assert len(worlds.effects()) == 1


def test_a_new_sum_counts_what_came_since_and_is_no_way_around(gate: Gate) -> None:
    """The renamed sum of what waited holds what was observed under its new name."""
    first = granted(gate, amount="90.00", customer="C-9")
    measured("paid_a_day")(gate)
    request = propose(gate.agent, amount="90.00", customer="C-9").request
    assert request is not None
    run.run_execution(first.pk)
    first.refresh_from_db()
    assert (first.status, first.code) == ("refused", "policy_tightened")
    assert "pay.sum" in first.detail


PAGE: dict[str, tuple[Change, str, bool]] = {
    "more": (rule(tier="escalate"), "It requires more now: pay.more", True),
    "the same": (tool(title="Pay somebody"), "It requires the same.", False),
    "less": (measured("paid_a_day"), "It requires the same.", False),
    "gone": (without_pay, "The policy no longer contains this tool", True),
}


@pytest.mark.parametrize("name", PAGE)
def test_the_page_says_before_the_decision_what_a_new_policy_means(
    gate: Gate, client: Client, name: str
) -> None:
    request = propose(gate.agent).request
    client.force_login(gate.rita)
    address = f"/requests/{request.pk}/"
    assert 'data-testid="policy-change"' not in client.get(address).content.decode()
    change, text, refuses = PAGE[name]
    change(gate)
    page = client.get(address).content.decode()
    assert 'data-testid="policy-change"' in page
    assert text in page
    assert ('data-testid="refuses"' in page) is refuses


def test_a_supervisor_who_is_a_reviewer_by_now_fills_no_supervisors_place(
    gate: Gate,
) -> None:
    execution = escalated(gate)
    role("sue", "reviewer")(gate)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "approver_revoked")


def test_a_supervisor_in_a_reviewers_place_may_be_a_reviewer_by_now(
    gate: Gate,
) -> None:
    request = propose(gate.agent).request
    decide(request, gate.sue)
    role("sue", "reviewer")(gate)
    execution = Execution.objects.get()
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED


@pytest.mark.parametrize("since", ["left", "reviewer", "nothing"])
def test_whoever_filled_a_step_of_an_earlier_version_counts_too(
    gate: Gate, since: str
) -> None:
    """Her step was complete when somebody passed the rest up: it is carried on."""
    steps = [
        {"role": "supervisor", "required": 1},
        {"role": "reviewer", "required": 1},
    ]
    document(gate, lambda found: found["steps"].update(approve=steps))
    request = propose(gate.agent).request
    decide(request, gate.sue)
    decide(request, gate.tom, "escalate")
    decide(request, gate.rita)
    decide(request, gate.sam)
    execution = Execution.objects.get()
    if since == "left":
        person("sue", is_active=False)(gate)
    elif since == "reviewer":
        role("sue", "reviewer")(gate)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    expected = "" if since == "nothing" else "approver_revoked"
    assert execution.code == expected


def test_the_policy_it_was_asked_under_says_how_many_must_agree(gate: Gate) -> None:
    """One that asks for fewer since then takes no place away."""
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue)
    document(gate, lambda found: found["rules"].clear())
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING
    assert not Execution.objects.exists()
    decide(request, gate.sam)
    execution = Execution.objects.get()
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED


# The same for an agent that performs the effect itself, and what it hears.
BY_AGENT: dict[str, tuple[Change, type[errors.DomainError], str]] = {
    "gone": (
        lambda gate: document(gate, lambda found: found["tools"].pop("deploy")),
        errors.ToolChanged,
        "tool_changed",
    ),
    "elsewhere": (
        tool("deploy", audience="https://b.example"),
        errors.ToolChanged,
        "tool_changed",
    ),
    "by the gate now": (
        tool("deploy", executor=MOVED),
        errors.ToolChanged,
        "tool_changed",
    ),
    "an approver left": (
        person("sam", is_active=False),
        errors.PreconditionFailed,
        "approver_revoked",
    ),
    "stopped": (off(Scope.AGENT, "riley"), errors.AgentStopped, "stopped"),
}


@pytest.mark.parametrize("name", BY_AGENT)
def test_an_agent_redeems_nothing_that_changed_since(gate: Gate, name: str) -> None:
    execution, token = deployment(gate)
    change, refusal, code = BY_AGENT[name]
    change(gate)
    with pytest.raises(refusal) as found:
        redeem.redeem_grant(token=token, agent="riley")
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", code)
    assert found.value.facts.get("reason") in {None, code}
    if refusal is not errors.PreconditionFailed:
        with pytest.raises(refusal):
            redeem.redeem_grant(token=token, agent="riley")


def test_a_paused_agent_redeems_later(gate: Gate) -> None:
    _, token = deployment(gate)
    row = stops.create_stop(
        scope=Scope.AGENT,
        key="riley",
        mode=StopMode.PAUSED,
        person=gate.sue,
        reason="wait",
    )
    with pytest.raises(errors.Conflict):
        redeem.redeem_grant(token=token, agent="riley")
    stops.lift_stop(stop_id=row.pk, person=gate.sam, reason="go on")
    assert redeem.redeem_grant(token=token, agent="riley").fence == 1

"""The limits of an agent's proposals and of its money in 24 hours."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agents import proposals, registry
from agents.registry import AgentChange
from journal import clock
from journal.errors import AgentRateLimited, InvalidInput
from journal.models import LogRecord
from policies.models import Observation
from reviews.executions import run
from reviews.models import Proposal
from tests import factories, worlds
from tests.agents import loosening
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews.executions import attempts


def limit(gate: Gate, count: int) -> None:
    change = AgentChange(daily_proposals=count)
    registry.change_agent(agent=gate.agent, change=change, by=gate.adam)
    gate.agent.refresh_from_db()


def test_what_is_over_the_limit_is_refused_until_there_is_room(gate: Gate) -> None:
    limit(gate, 2)
    oldest = propose(gate.agent, customer="C-1")
    propose(gate.agent, "look", thread="t-2")
    with pytest.raises(AgentRateLimited) as refused:
        propose(gate.agent, customer="C-3", thread="t-3")
    assert "2 actions in 24 hours" in str(refused.value.detail)
    assert 86_000 < refused.value.facts["retry_after"] <= 86_401
    assert Proposal.objects.count() == 2
    past = clock.now() - timedelta(hours=25)
    worlds.rewrite(Proposal, oldest.pk, created_at=past)
    propose(gate.agent, customer="C-3", thread="t-3")


def test_a_repeat_that_joins_its_request_does_not_count(gate: Gate) -> None:
    limit(gate, 1)
    first = propose(gate.agent)
    assert propose(gate.agent).pk == first.pk


def test_other_agents_have_their_own(gate: Gate) -> None:
    limit(gate, 1)
    propose(gate.agent)
    other = factories.agent(gate.owen, "other")
    for number in range(3):
        propose(other, customer=f"C-{number}", thread="o-1")


def test_a_limit_is_logged_and_taken_away(gate: Gate) -> None:
    limit(gate, 1)
    loosening.loosen(gate, AgentChange(daily_proposals=0))
    assert gate.agent.daily_proposals is None
    records = LogRecord.objects.filter(kind="agent.changed").order_by("pk")
    assert [row.data["daily_proposals"] for row in records] == [1, None]


def set_budget(gate: Gate, **amounts: str) -> None:
    change = AgentChange(daily_money=amounts)
    registry.change_agent(agent=gate.agent, change=change, by=gate.adam)
    gate.agent.refresh_from_db()


def pay(gate: Gate, amount: str, tool: str = "pay", **fields: Any) -> Proposal:
    thread = factories.new_thread()
    return propose(gate.agent, tool, amount=amount, thread=thread, **fields)


def test_money_over_the_budget_is_refused_in_a_sentence(gate: Gate) -> None:
    set_budget(gate, USD="100.00")
    pay(gate, "60.00")
    pay(gate, "30.10", "pay_queryable")
    propose(gate.agent, "look", thread="t-2")
    with pytest.raises(AgentRateLimited) as refused:
        pay(gate, "9.91", "pay_opaque")
    assert str(refused.value.detail) == (
        "This agent may move 100.00 USD in 24 hours. Its proposals use 90.10 USD, and"
        " this one moves 9.91 USD. Nothing was proposed. Propose at most 9.90 USD now,"
        " wait, or ask an administrator for a higher budget of money."
    )
    assert refused.value.facts["retry_after"] >= 86_400  # people decide until then
    pay(gate, "9.90", "pay_opaque")
    assert Proposal.objects.count() == 4


def test_a_currency_without_a_budget_moves_nothing(gate: Gate) -> None:
    set_budget(gate, USD="100.00")
    args = {"customer": "C-1", "amount": "1.00", "currency": "EUR"}
    with pytest.raises(AgentRateLimited, match="a budget of money in USD, and this"):
        propose(gate.agent, args=args)
    with pytest.raises(AgentRateLimited, match=r"Propose at most 100\.00 USD, or ask"):
        pay(gate, "100.01")


def test_what_a_person_rejects_or_the_agent_withdraws_is_free_again(gate: Gate) -> None:
    set_budget(gate, USD="100.00")
    rejected, withdrawn = pay(gate, "60.00"), pay(gate, "40.00", customer="C-2")
    factories.decide(rejected.request, gate.rita, "reject")
    pay(gate, "60.00", customer="C-3")
    proposals.withdraw_proposal(agent=gate.agent, proposal_id=withdrawn.pk)
    pay(gate, "40.00", customer="C-4")
    with pytest.raises(AgentRateLimited, match=r"Wait, or ask|nothing that moves it"):
        pay(gate, "0.01", customer="C-5")


def test_a_payment_counts_for_a_day_from_when_it_ran(gate: Gate) -> None:
    set_budget(gate, USD="100.00")
    execution = attempts.granted(gate, amount="60.00")
    run.run_execution(execution.pk)
    rows = Observation.objects.filter(proposal=execution.proposal_id)
    hour = timedelta(hours=1)
    rows.update(ran_by=clock.now() - 23 * hour)
    with pytest.raises(AgentRateLimited) as refused:
        pay(gate, "60.00", customer="C-9")
    assert 3_500 < refused.value.facts["retry_after"] <= 3_601
    rows.update(ran_by=clock.now() - 25 * hour)
    pay(gate, "60.00", customer="C-9")


def test_a_revision_counts_in_place_of_what_it_replaces(gate: Gate) -> None:
    set_budget(gate, USD="100.00")
    proposal = pay(gate, "10.00")
    with pytest.raises(AgentRateLimited, match=r"use 0\.00 USD, and this one moves"):
        factories.revise(gate.agent, proposal, amount="100.01")
    factories.revise(gate.agent, proposal, amount="100.00")
    with pytest.raises(AgentRateLimited):
        pay(gate, "0.01", customer="C-2")


def test_a_superseded_proposal_makes_room_for_its_successor(gate: Gate) -> None:
    set_budget(gate, USD="100.00")
    first = pay(gate, "90.00")
    second = propose(
        gate.agent, amount="95.00", supersedes=first.pk, thread=first.thread
    )
    assert not second.blocked_by


def test_money_before_the_budget_counts(gate: Gate) -> None:
    pay(gate, "90.00")
    set_budget(gate, USD="100.00")
    with pytest.raises(AgentRateLimited, match=r"use 90\.00 USD"):
        pay(gate, "10.01", customer="C-2")


def test_a_budget_of_money_is_logged_and_checked(gate: Gate) -> None:
    set_budget(gate, USD="7")
    record = LogRecord.objects.get(kind="agent.changed")
    assert record.data["daily_money"] == {"USD": "7.00"}
    for wrong in ({"USD": "1.001"}, {"usd": "1.00"}, {"USD": "-1"}, {"USD": "1e3"}):
        with pytest.raises(InvalidInput) as refused:
            registry.change_agent(
                agent=gate.agent, change=AgentChange(daily_money=wrong), by=gate.adam
            )
        assert refused.value.errors[0]["path"] == "daily_money"

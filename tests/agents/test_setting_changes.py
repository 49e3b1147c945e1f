"""One administrator tightens an agent's settings; two loosen them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from agents import registry, setting_changes
from agents.choices import SettingsStatus
from agents.models import Agent, SettingsChange
from agents.registry import AgentChange
from hitl import tasks
from journal import clock
from journal.errors import Conflict, NotPermitted, TextMissing
from journal.models import LogRecord
from policies.choices import Risk
from policies.documents import EVERY_TOOL
from reviews.administration import second_person
from tests import worlds
from tests.agents.loosening import ask, loosen
from tests.conftest import Gate

pytestmark = pytest.mark.django_db


@pytest.fixture
def tight(gate: Gate) -> Gate:
    """Riley may propose payments of medium risk, 5 a day and of 100.00 USD."""
    tighten(gate, tools=["pay"], risk_ceiling=Risk.MEDIUM, daily_proposals=5)
    tighten(gate, daily_money={"USD": "100.00"})
    return gate


def tighten(gate: Gate, **fields: Any) -> None:
    change = AgentChange(**fields)
    waits = registry.change_agent(agent=gate.agent, change=change, by=gate.adam)
    assert waits is None
    gate.agent.refresh_from_db()


def confirm(gate: Gate, change: SettingsChange, by: str = "alma") -> SettingsChange:
    return setting_changes.confirm_change(
        change_id=change.pk, digest=change.digest, by=gate.people[by]
    )


def read_agent() -> dict[str, Any]:
    """Every column of the agent."""
    row: Any = Agent.objects.values().get()
    return dict(row)


LOOSER: list[dict[str, Any]] = [
    {"tools": ["look", "pay"]},
    {"tools": [EVERY_TOOL]},
    {"risk_ceiling": Risk.HIGH},
    {"daily_proposals": 6},
    {"daily_proposals": 0},
    {"daily_money": {"USD": "100.01"}},
    {"daily_money": {"USD": "100.00", "EUR": "0.01"}},
    {"daily_money": {}},
]


@pytest.mark.parametrize("looser", LOOSER, ids=str)
def test_nobody_loosens_alone(tight: Gate, looser: dict[str, Any]) -> None:
    before = read_agent()
    change = ask(tight, AgentChange(**looser))
    assert read_agent() == before
    with pytest.raises(NotPermitted, match="Another administrator must answer"):
        confirm(tight, change, by="adam")
    for name in ("owen", "rita", "sue", "otto"):
        with pytest.raises(NotPermitted):
            confirm(tight, change, by=name)
    assert read_agent() == before
    assert confirm(tight, change).status == SettingsStatus.CONFIRMED
    after = read_agent()
    (name,) = looser
    assert after[name] == (looser[name] or None)
    assert after == {**before, name: after[name]}
    kinds = LogRecord.objects.order_by("pk").values_list("kind", flat=True)
    assert list(kinds)[-3:] == [
        "agent.change_proposed",
        "agent.change_confirmed",
        "agent.changed",
    ]


@pytest.mark.parametrize(
    "tighter",
    [
        {"tools": []},
        {"risk_ceiling": Risk.LOW},
        {"daily_proposals": 4},
        {"daily_money": {"USD": "99.99"}},
        {"daily_money": {"USD": "0", "EUR": "0"}},
    ],
    ids=str,
)
def test_what_tightens_takes_effect_at_once(
    tight: Gate, tighter: dict[str, Any]
) -> None:
    tighten(tight, **tighter)
    assert not SettingsChange.objects.exists()


def test_the_tighter_part_of_a_change_does_not_wait(tight: Gate) -> None:
    change = ask(
        tight,
        AgentChange(
            tools=["look"],
            risk_ceiling=Risk.HIGH,
            daily_proposals=3,
            daily_money={"EUR": "7.00"},
        ),
    )
    agent = Agent.objects.get()
    assert (agent.tools, agent.risk_ceiling) == ([], Risk.MEDIUM)
    assert (agent.daily_proposals, agent.daily_money) == (3, {"USD": "0.00"})
    confirm(tight, change)
    agent = Agent.objects.get()
    assert (agent.tools, agent.risk_ceiling) == (["look"], Risk.HIGH)
    assert (agent.daily_proposals, agent.daily_money) == (3, {"EUR": "7.00"})


def test_what_tightens_meanwhile_wins(tight: Gate) -> None:
    change = ask(tight, AgentChange(daily_money={"USD": "900.00"}))
    tighten(tight, daily_money={"USD": "10.00"})
    change.refresh_from_db()
    assert (change.status, change.settled_by) == (SettingsStatus.VOID, None)
    assert LogRecord.objects.filter(kind="agent.change_void").count() == 1
    with pytest.raises(Conflict):
        confirm(tight, change)
    loosen(tight, AgentChange(daily_money={"USD": "20.00"}))
    assert tight.agent.daily_money == {"USD": "20.00"}


def test_a_change_that_tightens_and_loosens_takes_the_place_of_what_waits(
    tight: Gate,
) -> None:
    first = ask(tight, AgentChange(daily_money={"USD": "900.00"}))
    second = ask(tight, AgentChange(daily_proposals=1, risk_ceiling=Risk.CRITICAL))
    first.refresh_from_db()
    assert first.status == SettingsStatus.VOID
    confirm(tight, second)
    agent = Agent.objects.get()
    assert (agent.daily_proposals, agent.risk_ceiling) == (1, Risk.CRITICAL)
    assert agent.daily_money == {"USD": "100.00"}


@pytest.mark.parametrize(
    "other",
    [
        {"tools": ["look", "pay"]},
        {"risk_ceiling": Risk.LOW},
        {"daily_proposals": 2},
        {"daily_money": None},
    ],
    ids=str,
)
def test_a_change_on_other_settings_is_void_when_it_is_confirmed(
    tight: Gate, other: dict[str, Any]
) -> None:
    change = ask(tight, AgentChange(risk_ceiling=Risk.HIGH))
    Agent.objects.update(**other)
    assert confirm(tight, change).status == SettingsStatus.VOID
    assert Agent.objects.get().risk_ceiling != Risk.HIGH


def test_it_is_confirmed_as_it_was_shown(tight: Gate) -> None:
    change = ask(tight, AgentChange(risk_ceiling=Risk.HIGH))
    with pytest.raises(Conflict, match="changed since they were shown"):
        setting_changes.confirm_change(
            change_id=change.pk, digest="sha256:other", by=tight.alma
        )
    assert Agent.objects.get().risk_ceiling == Risk.MEDIUM


def test_one_change_waits_at_a_time(tight: Gate) -> None:
    ask(tight, AgentChange(risk_ceiling=Risk.HIGH))
    with pytest.raises(Conflict, match="waits for a second administrator already"):
        ask(tight, AgentChange(daily_proposals=50))
    assert SettingsChange.objects.count() == 1


def test_it_is_refused_with_a_reason_or_withdrawn(tight: Gate) -> None:
    change = ask(tight, AgentChange(risk_ceiling=Risk.HIGH))
    with pytest.raises(TextMissing):
        setting_changes.refuse_change(change_id=change.pk, by=tight.alma, reason=" ")
    setting_changes.refuse_change(change_id=change.pk, by=tight.alma, reason="No.")
    change.refresh_from_db()
    assert (change.status, change.refusal) == ("refused", "No.")
    with pytest.raises(Conflict):
        confirm(tight, change)
    own = ask(tight, AgentChange(risk_ceiling=Risk.HIGH))
    with pytest.raises(NotPermitted):
        setting_changes.withdraw_change(change_id=own.pk, by=tight.alma)
    setting_changes.withdraw_change(change_id=own.pk, by=tight.adam)
    assert Agent.objects.get().risk_ceiling == Risk.MEDIUM


def test_a_reason_is_asked_for(tight: Gate) -> None:
    with pytest.raises(TextMissing) as refused:
        registry.change_agent(
            agent=tight.agent, change=AgentChange(tools=["*"]), by=tight.adam
        )
    assert refused.value.errors[0]["path"] == "reason"
    assert not SettingsChange.objects.exists()


def test_what_nobody_answers_lapses(tight: Gate) -> None:
    change = ask(tight, AgentChange(risk_ceiling=Risk.HIGH))
    past = clock.now() - second_person.ANSWERED_WITHIN - timedelta(seconds=1)
    worlds.rewrite(SettingsChange, change.pk, asked_at=past)
    with pytest.raises(Conflict):
        confirm(tight, change)
    assert tasks.lapse_unanswered() == 1
    change.refresh_from_db()
    assert change.status == SettingsStatus.LAPSED


def test_the_database_knows_two_people(tight: Gate) -> None:
    change = ask(tight, AgentChange(risk_ceiling=Risk.HIGH))
    with pytest.raises(IntegrityError), transaction.atomic():
        SettingsChange.objects.filter(pk=change.pk).update(
            status="confirmed", settled_by=tight.adam, settled_at=clock.now()
        )


def test_one_person_suffices_in_solo_mode(tight: Gate, settings: Any) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update={"solo": True})
    tighten(tight, tools=[EVERY_TOOL], risk_ceiling=Risk.CRITICAL, daily_money={})
    agent = Agent.objects.get()
    assert (agent.tools, agent.daily_money) == ([EVERY_TOOL], None)
    assert not SettingsChange.objects.exists()

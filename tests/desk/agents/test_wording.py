"""The words on the agents' pages, each asserted once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from guardian.shortcuts import remove_perm

from agents.models import Delivery, Endpoint
from desk.agents import steps
from journal import clock
from policies.models import Queue
from tests.agents.test_repairs import of_execution, stuck
from tests.agents.webhooks import deliveries
from tests.conftest import Gate
from tests.desk.agents.test_deliveries import dead
from tests.desk.agents.test_views import signed_in
from tests.factories import propose
from tests.markup import read_text
from tests.reviews.service import Service

pytestmark = pytest.mark.django_db
__all__ = ["dead"]

RUN, AGENT, ENDPOINTS = "/threads/riley/t-1/", "/agents/riley/", "/deliveries/"


def without_queues(gate: Gate) -> str:
    propose(gate.agent)
    for queue in Queue.objects.all():
        remove_perm("policies.decide", gate.rita, queue)
    return "/agents/"


def pending(gate: Gate) -> str:
    propose(gate.agent)
    return RUN


def agent(gate: Gate) -> str:
    propose(gate.agent)
    gate.agent.tools = ["pay", "never_heard_of"]
    gate.agent.save()
    return AGENT


def nothing(gate: Gate) -> str:
    return "/deliveries/"


def no_endpoint(gate: Gate) -> str:
    return f"{AGENT}endpoints/"


def nothing_to_repair(gate: Gate) -> str:
    propose(gate.agent)
    return f"{RUN}repair/"


def no_repair(gate: Gate) -> str:
    return "/repairs/"


def repair(gate: Gate) -> str:
    return f"/repairs/{of_execution(stuck(gate), gate.sue).pk}/"


def proposed_repair(gate: Gate) -> str:
    run = of_execution(stuck(gate), gate.sue)
    return f"/threads/{run.agent}/{run.thread}/repair/"


@pytest.mark.parametrize(
    ("page", "name", "testid", "text"),
    [
        (
            without_queues,
            "rita",
            "no-agents",
            "No agents. Agents appear here when you own them or when they propose to"
            " your queues.",
        ),
        (pending, "sue", "status", "Waiting for approval, 1 pending"),
        (agent, "sue", "pending-limit", "1 of 1000 allowed"),
        (
            agent,
            "sue",
            "tool-unknown",
            "Not in the active policy. Proposals for this tool are blocked.",
        ),
        (
            nothing,
            "adam",
            "failed",
            "Failed Not retried automatically No failed deliveries.",
        ),
        (
            nothing,
            "adam",
            "waiting",
            "Pending Next attempt first No pending deliveries.",
        ),
        (
            nothing,
            "adam",
            "lately",
            "Recently delivered Newest 10 None yet.",
        ),
        (
            no_endpoint,
            "owen",
            "no-endpoints",
            "No endpoints. The agent polls for results, or names a callback_url in a"
            " proposal.",
        ),
        (
            no_repair,
            "sue",
            "no-repairs",
            "No pending repairs. No manual correction awaits confirmation.",
        ),
        (
            nothing_to_repair,
            "sue",
            "nothing-to-repair",
            "Nothing to repair. Nothing in this run is stuck, and it has no checkpoint"
            " to correct. An unfinished run can be ended ten minutes after its last"
            " activity.",
        ),
        (
            proposed_repair,
            "sue",
            "nothing-to-repair",
            "Nothing to repair. A proposed repair of this run awaits confirmation .",
        ),
        (repair, "adam", "status", "Awaiting confirmation"),
        (repair, "sue", "withdraw", "Withdraw…"),
        (repair, "adam", "refuse-open", "Refuse…"),
    ],
)
def test_a_page_says(
    gate: Gate, page: Callable[[Gate], str], name: str, testid: str, text: str
) -> None:
    path = page(gate)
    assert read_text(signed_in(gate, name).get(path), testid) == text


@pytest.fixture
def owen(gate: Gate, dead: Delivery) -> Client:
    return signed_in(gate, "owen")


def messages(client: Client, path: str, **sent: str) -> list[str]:
    response = client.post(path, sent, follow=True)
    return [str(one) for one in response.context["messages"]]


def test_what_a_person_did_is_confirmed(owen: Client, dead: Delivery) -> None:
    place = f"/endpoints/{Endpoint.objects.get().pk}"
    assert messages(owen, f"{place}/switch/", to="off") == [
        "Endpoint disabled. Its deliveries stay pending."
    ]
    assert messages(owen, f"{place}/switch/", to="on") == [
        "Endpoint enabled. Pending deliveries are sent now."
    ]
    assert messages(owen, f"/deliveries/{dead.pk}/again/") == [
        "Resending. A failed attempt is retried for three days."
    ]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1, "Resending 1 delivery. Failed attempts are retried for three days."),
        (2, "Resending 2 deliveries. Failed attempts are retried for three days."),
    ],
)
def test_deliveries_are_counted_in_words(
    owen: Client, gate: Gate, receiver: Service, count: int, text: str
) -> None:
    if count == 2:
        propose(gate.agent, "pay", customer="C-2")
        deliveries.carry()
        past = clock.now() - timedelta(seconds=1)
        waiting = Delivery.objects.filter(status="waiting")
        waiting.update(next_at=past, give_up_at=past)
        deliveries.carry()
    endpoint = Endpoint.objects.get()
    assert messages(owen, f"/endpoints/{endpoint.pk}/again/") == [text]


def test_outcomes_have_the_pages_words() -> None:
    counted = [("granted", 2), ("unknown", 1), ("pending", 1)]
    assert steps.label_outcomes(counted) == [
        ("authorized", 2),
        ("unknown result", 1),
        ("pending", 1),
    ]

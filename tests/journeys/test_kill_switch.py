"""T23: from the click on Stop to no new effects, with everything running for real and
under load: web, worker, broker, database, and effects in process and by webhook."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx2
import pytest
from django.test import Client

from agents.models import Agent
from chaos import cluster
from hitl.local.process import Child
from reviews.choices import IN_FLIGHT, ExecutionStatus
from reviews.models import Execution, Stop
from reviews.stops import stops
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews import service
from tests.reviews.service import Service
from tests.stack import Stack, wait_until

pytestmark = [
    pytest.mark.servers,
    pytest.mark.proof,
    pytest.mark.django_db(transaction=True),
]

LOAD = 40  # executions queued before the click
BOUND_S = 1.0  # within which no effect begins any more
BACKEND = "django.contrib.auth.backends.ModelBackend"
PATIENCE_S = 60
SCOPES = ("agent", "thread", "tool", "everything")


@dataclass(frozen=True)
class Trial:
    """What one click did: seconds after it, and how many."""

    answered: float
    last: float  # the last effect that began after the click; 0 for none
    after_answer: float  # the same, after the answer
    begun_late: int  # after the answer and the bound
    refused: int
    ran: int


@pytest.fixture
def outside(gate: Gate, live: Stack) -> Iterator[Service]:
    """`look` in process and `ping` by webhook, both without asking anybody."""
    with service.running() as found:
        document = factories.document_of_tests()
        look = document["tools"]["look"]
        look["executor"]["path"] = "tests.worlds.timed"
        hook = {"kind": "webhook", "url": found.url}
        document["tools"]["ping"] = {
            **look,
            "execution_class": "opaque",
            "executor": hook,
        }
        factories.policy(gate.people, document)
        live.extra["WEBHOOK_NETWORKS"] = "127.0.0.1/32"
        yield found
        del live.extra["WEBHOOK_NETWORKS"]


@pytest.fixture
def adam(gate: Gate, live: Stack) -> Iterator[httpx2.Client]:
    """An administrator's browser, as far as it sends cookies."""
    signed_in = Client()
    signed_in.force_login(gate.adam, BACKEND)
    cookies = {name: one.value for name, one in signed_in.cookies.items()}
    with httpx2.Client(base_url=live.base_url, cookies=cookies, timeout=30) as client:
        yield client


def test_from_the_click_to_no_new_effects(
    gate: Gate,
    live: Stack,
    outside: Service,
    adam: httpx2.Client,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    worker = live.start_worker()
    n = proof_n(small=4, full=100)
    trials = [one_trial(gate, outside, adam, worker, at) for at in range(n)]
    lasts = sorted(trial.last for trial in trials)
    p99 = lasts[max(-(-99 * n // 100) - 1, 0)]
    assert p99 <= BOUND_S, lasts
    assert sum(trial.begun_late for trial in trials) == 0
    assert all(trial.refused for trial in trials), "nothing was left to stop"
    record_proof("T23", said(trials, p99))


def said(trials: list[Trial], p99: float) -> str:
    n = len(trials)
    lasts = sorted(trial.last for trial in trials)
    answered = sorted(trial.answered for trial in trials)
    tail = max(trial.after_answer for trial in trials)
    ran = sum(trial.ran for trial in trials)
    refused = sum(trial.refused for trial in trials)
    middle, hear = lasts[n // 2] * 1000, answered[n // 2] * 1000
    return (
        f"{n} clicks on Stop over {ran + refused:,} executions by callable and "
        f"webhook, each scope in turn: no new effect after p50 {middle:.0f} ms, p99 "
        f"{p99 * 1000:.0f} ms of the click (answered after p50 {hear:.0f} ms); the "
        f"last began {tail * 1000:.0f} ms after the answer, 0 of {n} later than "
        f"{BOUND_S:.0f} s (at most {300 / n:.2g} %); {refused:,} refused before they "
        "ran"
    )


def one_trial(
    gate: Gate, outside: Service, adam: httpx2.Client, worker: Child, number: int
) -> Trial:
    scope = SCOPES[number % len(SCOPES)]
    agent = factories.agent(gate.owen, f"agent-{number}", tools=["look", "ping"])
    before = len(begun(outside))
    with held(worker):
        load(agent, only_look=scope == "tool")
    wait_until(lambda: len(begun(outside)) > before, PATIENCE_S)
    form = stop_form(adam, agent, scope)
    clicked = time.monotonic()
    answer = adam.post(form["url"], data=form["data"], headers=form["headers"])
    answered = time.monotonic()
    assert answer.status_code == 302, answer.text
    mine = Execution.objects.filter(proposal__agent=agent.slug)
    wait_until(
        lambda: not mine.filter(status__in=IN_FLIGHT).exists(),
        PATIENCE_S,
        lambda: str(list(mine.values_list("status", flat=True))),
    )
    after = [at for at in begun(outside)[before:] if at > clicked]
    lift(gate)
    return Trial(
        answered=answered - clicked,
        last=max(after, default=clicked) - clicked,
        after_answer=max([0.0, *(at - answered for at in after)]),
        begun_late=sum(at > answered + BOUND_S for at in after),
        refused=mine.filter(status=ExecutionStatus.REFUSED).count(),
        ran=mine.filter(status=ExecutionStatus.SUCCEEDED).count(),
    )


@contextmanager
def held(worker: Child) -> Iterator[None]:
    """So that it cannot be through with the load before the click."""
    cluster.signal_group(worker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        cluster.signal_group(worker.pid, signal.SIGCONT)


def load(agent: Agent, *, only_look: bool) -> None:
    for number in range(LOAD):
        tool = "look" if only_look or number % 2 else "ping"
        propose(agent, tool, args={"q": f"shoes {number}"})


def begun(outside: Service) -> list[float]:
    """When each effect so far began, the earliest first."""
    return sorted([*worlds.times(), *outside.times])


def stop_form(adam: httpx2.Client, agent: Agent, scope: str) -> dict[str, Any]:
    """The page as it is opened, and what its button sends."""
    url = f"/stop/?agent={agent.slug}&thread=t-1&tool=look"
    page = adam.get(url).text
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert token is not None, page
    keys = {"agent": agent.slug, "thread": f"{agent.slug}/t-1", "tool": "look"}
    target = f"{scope}:{keys.get(scope, '')}"
    assert f'value="{target}"' in page
    origin = str(adam.base_url).rstrip("/")
    # As a browser does on loopback, where even a secure cookie is sent.
    kept = "; ".join(f"{one.name}={one.value}" for one in adam.cookies.jar)
    data = {
        "csrfmiddlewaretoken": token[1],
        "target": target,
        "mode": "stopped",
        "reason_code": "runaway",
        "sure": "all agents",
    }
    return {"url": url, "data": data, "headers": {"Origin": origin, "Cookie": kept}}


def lift(gate: Gate) -> None:
    """For the next trial: everything takes two people."""
    row = Stop.objects.get(lifted_at=None)
    on_again = partial(stops.lift_stop, stop_id=row.pk, reason="the next trial")
    if on_again(person=gate.sue).lifted_at is None:
        on_again(person=gate.sam)

"""G10: a thousand requests, each decided by thirty-two people at the same moment, and
every approval performed by the worker."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from agents.idempotency import StoredAnswer
from journal import log
from policies import people
from policies.choices import Role
from policies.models import Person, Queue
from policies.people import NewPerson
from reviews.choices import VERDICT_SPECS, Verdict
from reviews.decisions import decide
from reviews.decisions.submission import VerdictSubmission
from reviews.models import Decision, Execution
from tests.races.together import Together, measured
from tests.stack import wait_until

from . import processes
from .load import percentile
from .product import Client
from .report import Line, Options, ms, say
from .seed import PASSWORD, House

COUNT, CROWD, ALONE = 1_000, 32, 100
BAR = 32
PATIENCE_S = 120.0
EVERY = 100


def measure(house: House, options: Options) -> Line:
    """One thousand always: what is counted is winners, and each is one of so many."""
    crowd, client = _crowd(), Client(house, 0)
    alone = [
        measured(next(_verdicts(client.propose(), crowd[:1]))).seconds
        for _ in range(ALONE)
    ]
    raced, requests, winners = [], [], 0
    with Together(CROWD) as together:
        for number in range(COUNT):
            stored = client.propose()
            results = together.run(list(_verdicts(stored, crowd)))
            raced += [result.seconds for result in results]
            winners += [result.won for result in results].count(True) == 1
            requests.append(stored)
            if (number + 1) % EVERY == 0:
                say(f"G10: {number + 1} raced, {winners} single winners")
    effects, expected = _effects([stored.proposal for stored in requests])
    return _line(alone, raced, winners, effects, expected)


def _crowd() -> list[Person]:
    def one(number: int) -> Person:
        name = f"crowd{number}"
        newcomer = NewPerson(name, f"{name}@example.com", PASSWORD, Role.REVIEWER)
        person = people.add_person(newcomer, by=log.SYSTEM)
        people.admit_to_queues(person, Queue.objects.all(), by=log.SYSTEM)
        return Person.objects.get(pk=person.pk)

    return [one(number) for number in range(CROWD)]


def _verdicts(stored: StoredAnswer, crowd: list[Person]) -> Iterator[Callable[[], Any]]:
    """Seven of eight say yes, so that most lead to an effect."""
    asked = stored.body["request"]
    for person in random.sample(crowd, len(crowd)):
        verdict = random.choice([Verdict.REJECT, *[Verdict.APPROVE] * 7])  # noqa: S311
        said = VerdictSubmission(
            request_id=asked["id"],
            person=copy.copy(person),
            verdict=verdict,
            reason_code=VERDICT_SPECS[verdict].reasons[0],
            version=asked["version"],
            action_hash=stored.body["action_hash"],
        )
        yield partial(decide.decide_request, said)


def _effects(proposals: list[str]) -> tuple[int, int]:
    """How many ran, each once, and how many approvals there were."""
    approved = Decision.objects.filter(
        request__proposal__in=proposals, verdict=Verdict.APPROVE, counts=True
    ).count()
    ran = Execution.objects.filter(proposal__in=proposals, status="succeeded")
    with processes.worker():
        wait_until(lambda: ran.count() >= approved, PATIENCE_S)
    once = ran.filter(fence=1, attempts=1)
    return once.count(), approved


def _line(
    alone: list[float], raced: list[float], winners: int, effects: int, expected: int
) -> Line:
    p99, one = percentile(raced, 99), percentile(alone, 99)
    return Line(
        "G10 32 at once",
        f"{winners:,} single winners, {effects} single effects of {expected} approvals;"
        f" p99 {ms(p99)}, {p99 / one:.1f} x one alone ({ms(one)})",
        f"{COUNT:,} single winners, one effect an approval, p99 <= {BAR} x",
        winners == COUNT and effects == expected and p99 <= BAR * one,
        f"n = {COUNT:,} x {CROWD}; alone n = {ALONE}",
    )

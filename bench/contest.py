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
from .product import ProductClient
from .report import GoalResult, Options, format_ms, print_text
from .seed import PASSWORD, Seed

CONTESTED, DECIDERS, ALONE = 1_000, 32, 100
CONTEST_BAR = 32
EFFECTS_PATIENCE_S = 120.0
_REPORT_EVERY = 100


def measure_simultaneous_decisions(seed: Seed, options: Options) -> GoalResult:
    """One thousand always: what is counted is winners, and each is one of so many."""
    crowd, client = _add_deciders(), ProductClient(seed, 0)
    alone = [
        measured(next(_list_decisions(client.propose(), crowd[:1]))).seconds
        for _ in range(ALONE)
    ]
    raced, requests, winners = [], [], 0
    with Together(DECIDERS) as together:
        for number in range(CONTESTED):
            stored = client.propose()
            results = together.run(list(_list_decisions(stored, crowd)))
            raced += [result.seconds for result in results]
            winners += [result.won for result in results].count(True) == 1
            requests.append(stored)
            if (number + 1) % _REPORT_EVERY == 0:
                print_text(f"G10: {number + 1} raced, {winners} single winners")
    effects, expected = _count_effects([stored.proposal for stored in requests])
    return _build_contest_result(alone, raced, winners, effects, expected)


def _add_deciders() -> list[Person]:
    def one(number: int) -> Person:
        name = f"crowd{number}"
        newcomer = NewPerson(name, f"{name}@example.com", PASSWORD, Role.REVIEWER)
        person = people.add_person(newcomer, by=log.SYSTEM)
        people.admit_to_queues(person, Queue.objects.all(), by=log.SYSTEM)
        return Person.objects.get(pk=person.pk)

    return [one(number) for number in range(DECIDERS)]


def _list_decisions(
    stored: StoredAnswer, crowd: list[Person]
) -> Iterator[Callable[[], Any]]:
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


def _count_effects(proposals: list[str]) -> tuple[int, int]:
    """How many ran, each once, and how many approvals there were."""
    approved = Decision.objects.filter(
        request__proposal__in=proposals, verdict=Verdict.APPROVE, counts=True
    ).count()
    ran = Execution.objects.filter(proposal__in=proposals, status="succeeded")
    with processes.start_worker():
        wait_until(lambda: ran.count() >= approved, EFFECTS_PATIENCE_S)
    once = ran.filter(fence=1, attempts=1)
    return once.count(), approved


def _build_contest_result(
    alone: list[float], raced: list[float], winners: int, effects: int, expected: int
) -> GoalResult:
    p99, one = percentile(raced, 99), percentile(alone, 99)
    return GoalResult(
        "G10 32 at once",
        f"{winners:,} single winners, {effects} single effects of {expected} approvals;"
        f" p99 {format_ms(p99)}, {p99 / one:.1f} x one alone ({format_ms(one)})",
        f"{CONTESTED:,} single winners, one effect an approval, p99 <= {CONTEST_BAR} x",
        winners == CONTESTED and effects == expected and p99 <= CONTEST_BAR * one,
        f"n = {CONTESTED:,} x {DECIDERS}; alone n = {ALONE}",
    )

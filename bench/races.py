"""G8 and G10: decisions that race the deadline, and decisions that race each other.

G8 lets ten thousand deadlines fall in one second while a person goes on deciding. It
measures how long the worker's sweeps take to expire them all, and counts what was
decided after its deadline. G10 lets thirty-two people decide each of a thousand
requests at the same moment, and the worker performs every approval.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from typing import Any

import psycopg
from django.db import connection

from agents.idempotency import StoredAnswer
from journal.errors import DomainError
from policies.choices import Role
from policies.models import Person
from reviews.choices import Verdict
from reviews.decisions import decide
from reviews.models import Decision, Execution
from tests.races.together import Together, measured
from world import cast
from world.processes import wait_until

from . import clients, servers
from .load import percentile
from .report import GoalResult, Options, format_ms, format_ratio, print_text
from .seed import Seed

DUE = 10_000
EXPIRY_BAR_S = 5.0
MOST_ROUNDS = 3  # asking so many takes a minute each time
_CLIENTS = 4
_AHEAD_S = 3  # the second in question begins so long after it was fixed
EXPIRY_PATIENCE_S = 60.0
_SET_DEADLINES = """
UPDATE reviews_approvalrequest
SET expires_at = %(from)s::timestamptz + random() * interval '1 second'
WHERE status = 'pending'
"""
_CHOOSE_SECOND = "SELECT clock_timestamp() + make_interval(secs => %s)"
_LEFT = "SELECT count(*) FROM reviews_approvalrequest WHERE status = 'pending'"
_SINCE = "SELECT extract(epoch FROM clock_timestamp() - %s)"
_COUNT_ENDS = """
SELECT count(*) FILTER (WHERE status = 'expired' AND settled_at < expires_at),
       count(*) FILTER (WHERE status <> 'expired' AND settled_at >= expires_at),
       count(*) FILTER (WHERE status <> 'expired')
FROM reviews_approvalrequest WHERE expires_at >= %(from)s::timestamptz
  AND expires_at < %(from)s::timestamptz + interval '1 second'
"""
CONTESTED, DECIDERS, ALONE = 1_000, 32, 100
CONTEST_BAR = 32
EFFECTS_PATIENCE_S = 120.0
_REPORT_EVERY = 100


def measure_expiry(seed: Seed, options: Options) -> tuple[GoalResult, ...]:
    """Seconds from the first of the deadlines until none of them waits."""
    took, early, late, decided = [], 0, 0, 0
    rounds, due = min(options.rounds, MOST_ROUNDS), options.scale(DUE, least=_CLIENTS)
    for number in range(rounds):
        asked = _propose_all(seed, due)
        with (
            servers.start_workers(),
            clients.connect_database(autocommit=True) as watch,
        ):
            seconds, ends = _time_expiry(seed, asked, watch)
        took.append(seconds)
        early, late, decided = early + ends[0], late + ends[1], decided + ends[2]
        print_text(f"G8 round {number + 1}: {seconds:.2f} s, {ends[2]} decided in time")
    basis = f"n = {due:,} in one second, {rounds} rounds"
    return (
        GoalResult(
            "G8 expiry",
            f"{format_ratio(took)} s",
            f"<= {EXPIRY_BAR_S:.0f} s",
            median(took) <= EXPIRY_BAR_S,
            basis,
        ),
        GoalResult(
            "G8 decided after the deadline, expired before it",
            f"{late}, {early}",
            "0, 0",
            not late and not early,
            f"{basis}, {decided} decided meanwhile",
        ),
    )


def _propose_all(seed: Seed, due: int) -> list[StoredAnswer]:
    def some(number: int) -> list[StoredAnswer]:
        try:
            client = clients.ProductClient(seed, number)
            return [client.propose() for _ in range(due // _CLIENTS)]
        finally:
            connection.close()

    with ThreadPoolExecutor(_CLIENTS) as pool:
        return list(itertools.chain(*pool.map(some, range(_CLIENTS))))


def _time_expiry(
    seed: Seed, asked: Sequence[StoredAnswer], watch: psycopg.Connection[Any]
) -> tuple[float, tuple[int, int, int]]:
    (begins,) = clients.read_row(watch, _CHOOSE_SECOND, [_AHEAD_S])
    watch.execute(_SET_DEADLINES, {"from": begins})
    over = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        person = pool.submit(_decide_until, seed, asked, over)
        seconds = _wait_until_expired(watch, begins)
        over.set()
        person.result()
    early, late, decided = clients.read_row(watch, _COUNT_ENDS, {"from": begins})
    return seconds, (early, late, decided)


def _wait_until_expired(watch: psycopg.Connection[Any], begins: Any) -> float:
    while True:
        (left,), (since,) = (
            clients.read_row(watch, _LEFT),
            clients.read_row(watch, _SINCE, [begins]),
        )
        if not left:
            return float(since)
        if since > EXPIRY_PATIENCE_S:
            raise TimeoutError(f"{left} are still waiting after {since:.0f} s")
        time.sleep(0.02)


def _decide_until(
    seed: Seed, asked: Sequence[StoredAnswer], over: threading.Event
) -> None:
    """Go on deciding, in time or too late, until it is over."""
    client = clients.ProductClient(seed, 0)
    try:
        for stored in random.sample(asked, len(asked)):
            if over.is_set():
                return
            try:
                client.decide(stored, Verdict.APPROVE)
            except DomainError:
                continue  # too late: that is what is counted
    finally:
        connection.close()


def measure_simultaneous_decisions(
    seed: Seed, options: Options
) -> tuple[GoalResult, ...]:
    """Race one thousand requests in one round: winners are counted, each is one of so
    many."""
    contested = options.scale(CONTESTED)
    crowd, client = _add_deciders(), clients.ProductClient(seed, 0)
    alone = [
        measured(next(_list_decisions(client.propose(), crowd[:1]))).seconds
        for _ in range(ALONE)
    ]
    raced, requests, winners = [], [], 0
    with Together(DECIDERS) as together:
        for number in range(contested):
            stored = client.propose()
            results = together.run(list(_list_decisions(stored, crowd)))
            raced += [result.seconds for result in results]
            winners += [result.won for result in results].count(True) == 1
            requests.append(stored)
            if (number + 1) % _REPORT_EVERY == 0:
                print_text(f"G10: {number + 1} raced, {winners} single winners")
    effects, expected = _count_effects([stored.proposal for stored in requests])
    return _build_contest_results(alone, raced, winners, effects, expected)


def _add_deciders() -> list[Person]:
    names = [f"crowd{number}" for number in range(DECIDERS)]
    cast.admit_everywhere(cast.add_person(name, Role.REVIEWER) for name in names)
    return list(Person.objects.filter(username__in=names))


def _list_decisions(
    stored: StoredAnswer, crowd: list[Person]
) -> Iterator[Callable[[], Any]]:
    """Seven of eight say yes, so that most lead to an effect."""
    for person in random.sample(crowd, len(crowd)):
        verdict = random.choice([Verdict.REJECT, *[Verdict.APPROVE] * 7])  # noqa: S311
        submission = clients.build_submission(stored, person, verdict)
        yield partial(decide.decide_request, submission)


def _count_effects(proposals: list[str]) -> tuple[int, int]:
    """Count the executions that ran once, and the approvals."""
    approved = Decision.objects.filter(
        request__proposal__in=proposals, verdict=Verdict.APPROVE, counts=True
    ).count()
    ran = Execution.objects.filter(proposal__in=proposals, status="succeeded")
    with servers.start_workers():
        wait_until(lambda: ran.count() >= approved, EFFECTS_PATIENCE_S)
    once = ran.filter(fence=1, attempts=1)
    return once.count(), approved


def _build_contest_results(
    alone: list[float], raced: list[float], winners: int, effects: int, expected: int
) -> tuple[GoalResult, ...]:
    p99, alone_p99 = percentile(raced, 99), percentile(alone, 99)
    contested = len(raced) // DECIDERS
    basis = f"n = {contested:,} x {DECIDERS}"
    return (
        GoalResult(
            "G10 single winners",
            f"{winners:,}",
            f"{contested:,}",
            winners == contested,
            basis,
        ),
        GoalResult(
            "G10 single effects",
            f"{effects:,}",
            f"{expected:,}, one an approval",
            effects == expected,
            basis,
        ),
        GoalResult(
            f"G10 {DECIDERS} at once, p99",
            f"{p99 / alone_p99:.1f} x, {format_ms(p99)}",
            f"<= {CONTEST_BAR} x one alone",
            p99 <= CONTEST_BAR * alone_p99,
            f"{basis}; alone n = {len(alone)}",
            floor=f"one alone {format_ms(alone_p99)}",
        ),
    )

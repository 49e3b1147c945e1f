"""G11: from the commit of a decision to the agent that waits for it by long-poll, while
a hundred others wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import connection

from agents.idempotency import StoredAnswer
from reviews.choices import Verdict
from reviews.models import Proposal

from . import held, processes, product, tasks
from .report import GoalResult, Options, build_latency_result, print_text, format_times
from .seed import Seed

WAITERS = 100
LONG_POLL_P50_S, LONG_POLL_P99_S = 0.020, 0.080
_DECISIONS = 25  # for each second of the options
_BETWEEN_DECISIONS_S = 0.03


@dataclass
class Waiters:
    """Who waits, and when each had its answer."""

    port: int
    sent: int = 0
    answered: dict[str, float] = field(default_factory=dict)

    async def wait(self, proposal: str, key: str) -> None:
        path = f"/api/v1/proposals/{proposal}?wait=60"
        headers = {"Authorization": f"Bearer {key}"}
        async with held.open_request(self.port, path, headers) as reader:
            self.sent += 1
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2]
            said = await reader.readexactly(int(length.split(b"\r\n", 1)[0]))
            at = time.monotonic()
        if b'"status": "rejected"' not in said and b'"status":"rejected"' not in said:
            raise LookupError(said.decode())
        self.answered[proposal] = at


@dataclass
class CommitClock:
    """Notes when a transaction was over: the first thing after it is the NOTIFY."""

    at: float = 0.0

    def __call__(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if "pg_notify" in sql:
            self.at = time.monotonic()
        return execute(sql, *rest)


def measure_long_poll(seed: Seed, options: Options) -> GoalResult:
    """Rounds of single decisions, each awaited."""
    rounds: list[list[float]] = []
    with processes.start_webs(1) as (port,), held.hold_connections() as holder:
        for number in range(options.rounds):
            n = round(_DECISIONS * options.seconds)
            rounds.append(_time_decisions(seed, holder, port, n))
            print_text(f"G11 round {number + 1}: {format_times(rounds[-1])}")
            tasks.connect_broker().flushdb()
    return _build_long_poll_result(rounds)


def _time_decisions(
    seed: Seed, holder: held.ConnectionHolder, port: int, n: int
) -> list[float]:
    """As many are decided as wait beside the hundred that go on waiting."""
    client, waiters = product.ProductClient(seed, 0), Waiters(port)
    stored = [client.propose() for _ in range(n + WAITERS)]
    keys = _map_keys(seed, [one.proposal for one in stored])
    for one in stored:
        holder.start(partial(waiters.wait, one.proposal, keys[one.proposal]))
    held.wait_until(lambda: waiters.sent == len(stored), "nobody waits")
    time.sleep(2.0)  # all of them were asked about once, and are held
    return [_time_decision(client, waiters, one) for one in stored[:n]]


def _map_keys(seed: Seed, proposals: list[str]) -> dict[str, str]:
    """The key of each proposal's own agent."""
    named = zip(seed.agents, seed.keys, strict=True)
    of = {agent.slug: key for agent, key in named}
    rows = Proposal.objects.filter(pk__in=proposals).values_list("pk", "agent")
    return {pk: of[agent] for pk, agent in rows}


def _time_decision(
    client: product.ProductClient, waiters: Waiters, stored: StoredAnswer
) -> float:
    """Seconds from the commit to the whole answer."""
    committed = CommitClock()
    with connection.execute_wrapper(committed):
        client.decide(stored, Verdict.REJECT)
    held.wait_until(lambda: stored.proposal in waiters.answered, "it was not told")
    time.sleep(_BETWEEN_DECISIONS_S)
    return waiters.answered[stored.proposal] - committed.at


def _build_long_poll_result(rounds: list[list[float]]) -> GoalResult:
    return build_latency_result(
        "G11 decided -> the waiting agent knows",
        rounds,
        p50=LONG_POLL_P50_S,
        p99=LONG_POLL_P99_S,
        under=f"{WAITERS} others waiting",
    )

"""G4: proposals over HTTP through every middleware.

Two web processes answer sixteen connections. Beside them stand sixteen raw inserts and
a ping of the same processes.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from statistics import median

from . import callables, clients, load, servers
from .load import HttpConnection, Run, run_clients
from .report import (
    GoalResult,
    Options,
    format_ms,
    format_ratio,
    join_values,
    print_text,
)
from .seed import ProposalCalls, Seed

_PROCESSES, _CONNECTIONS = 2, 16
RATE_BAR, P99_BAR = 0.4, 3.0


@dataclass(frozen=True, slots=True)
class ProposalRound:
    """One stretch of each: raw inserts, pings and proposals."""

    raw: Run
    ping: Run
    ours: Run

    @property
    def rate(self) -> float:
        return self.ours.rate / self.raw.rate

    @property
    def allowed(self) -> float:
        """The p99 that the bar allows, read strictly: only the ping's is tripled."""
        return P99_BAR * self.ping.at(99) + self.raw.at(99)

    def __str__(self) -> str:
        return (
            f"{self.ours.rate:.0f}/s of {self.raw.rate:.0f}/s, p99 "
            f"{format_ms(self.ours.at(99))}; ping {format_ms(self.ping.at(99))}, "
            f"raw {format_ms(self.raw.at(99))}"
        )


def measure_http_proposals(seed: Seed, options: Options) -> tuple[GoalResult, ...]:
    """Measure the three in turn."""
    rounds: list[ProposalRound] = []
    with servers.start_webs(_PROCESSES) as ports:
        _run_all(ports, seed, 0.5)
        for number in range(options.rounds):
            rounds.append(_run_all(ports, seed, options.seconds))
            print_text(f"G4 round {number + 1}: {rounds[-1]}")
    return _build_proposals_results(rounds, options)


def _run_all(ports: list[int], seed: Seed, seconds: float) -> ProposalRound:
    raw = run_clients(clients.open_insert_client, threads=_CONNECTIONS, seconds=seconds)
    calls = ProposalCalls(seed.keys)

    def ask(connection: HttpConnection) -> Awaitable[bytes]:
        return connection.exchange(load.build_request("GET", "/livez", {}))

    def propose(connection: HttpConnection) -> Awaitable[bytes]:
        call = calls.build_next()
        return connection.exchange(
            load.build_post("/api/v1/proposals", call.headers, call.body)
        )

    ping, ours = (
        load.run_http_actions(ports, act, connections=_CONNECTIONS, seconds=seconds)
        for act in (ask, propose)
    )
    callables.empty_broker()
    return ProposalRound(raw, ping, ours)


def _build_proposals_results(
    rounds: list[ProposalRound], options: Options
) -> tuple[GoalResult, ...]:
    rates = [lap.rate for lap in rounds]
    slow = [lap.ours.at(99) / lap.allowed for lap in rounds]
    ours = median([lap.ours.rate for lap in rounds])
    raw = median([lap.raw.rate for lap in rounds])
    counts = join_values(
        sum(getattr(lap, name).count for lap in rounds)
        for name in ("ours", "raw", "ping")
    )
    basis = f"n = {counts} (ours, raw, ping), {options.rounds} rounds"
    return (
        GoalResult(
            "G4 HTTP propose, rate",
            f"{format_ratio(rates)} x, {ours:.0f}/s",
            f">= {RATE_BAR} x the raw insert's",
            median(rates) >= RATE_BAR,
            basis,
            floor=f"raw insert {raw:.0f}/s",
        ),
        GoalResult(
            "G4 HTTP propose, p99",
            f"{format_ratio(slow)} x what is allowed,"
            f" {format_ms(median([lap.ours.at(99) for lap in rounds]))}",
            f"<= {P99_BAR:.0f} x ping's p99 + the raw insert's",
            median(slow) <= 1,
            basis,
            floor=f"ping {format_ms(median([lap.ping.at(99) for lap in rounds]))},"
            f" raw insert {format_ms(median([lap.raw.at(99) for lap in rounds]))}",
        ),
    )

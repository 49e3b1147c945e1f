"""G12: propose, decide and read the outcome over HTTP, against two web processes.

One cycle is three calls on one kept-alive connection: an agent proposes, a reviewer's
program rejects by its personal token, and the agent reads the outcome. A peer did the
same three calls on this kind of machine; the bar is a multiple of its rate.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from reviews.choices import Verdict
from reviews.people import tokens

from . import callables, load, servers
from .load import HttpConnection, Run
from .report import GoalResult, Options, format_times, join_values, print_text
from .seed import ProposalCalls, Seed, build_headers, build_verdict

_PROCESSES = 2
_CYCLES_A_THREAD = 4  # five rejections in a row would pause the run
CONNECTIONS = (1, 4, 16)
# Cycles a second of awaithumans 0.1.11 on a machine of two cores, for CONNECTIONS.
_PEER = (79, 76, 70)
_BAR = 3.0
_REASON = {"reason_code": "other", "reason": "The photo shows another lid."}


@dataclass(frozen=True)
class CycleClient:
    """The agents and the reviewers in turn, each cycle with a proposal of its own."""

    calls: ProposalCalls
    tokens: list[str]

    async def run_cycle(self, connection: HttpConnection) -> None:
        """Propose, reject and read. Raises LookupError for a wrong outcome."""
        call = self.calls.build_next()
        proposal = json.loads(
            await connection.exchange(
                load.build_post("/api/v1/proposals", call.headers, call.body)
            )
        )
        token = self.tokens[call.number % len(self.tokens)]
        rejection = build_verdict(proposal, Verdict.REJECT, **_REASON)
        await connection.exchange(
            load.build_post(rejection[0], build_headers(token), rejection[1])
        )
        path = f"/api/v1/proposals/{proposal['id']}"
        headers = {"Authorization": f"Bearer {call.key}"}
        answer = await connection.exchange(load.build_request("GET", path, headers))
        if json.loads(answer)["status"] != "rejected":
            raise LookupError(answer.decode())


def measure_http_cycles(seed: Seed, options: Options) -> GoalResult:
    """Measure each number of clients in turn."""
    reviewers = [
        tokens.create_token(person=person, name="bench") for person in seed.reviewers
    ]

    def build_client() -> CycleClient:
        return CycleClient(ProposalCalls(seed.keys, _CYCLES_A_THREAD), reviewers)

    runs: dict[int, list[Run]] = defaultdict(list)
    with servers.start_webs(_PROCESSES) as ports:
        # Every process learns every key and parses the policy.
        _run_cycles(build_client(), ports, CONNECTIONS[-1], 2.0)
        for number in range(options.rounds):
            for connections in CONNECTIONS:
                run = _run_cycles(build_client(), ports, connections, options.seconds)
                runs[connections].append(run)
            print_text(f"G12 round {number + 1}: {_describe_round(runs)}")
    return _build_cycles_result(runs, options)


def _run_cycles(
    client: CycleClient, ports: list[int], connections: int, seconds: float
) -> Run:
    run = load.run_http_actions(
        ports, client.run_cycle, connections=connections, seconds=seconds
    )
    callables.empty_broker()
    return run


def _describe_round(runs: dict[int, list[Run]]) -> str:
    last = [series[-1] for series in runs.values()]
    return join_values(f"{run.rate:.0f}/s {format_times(run.times)}" for run in last)


def _build_cycles_result(runs: dict[int, list[Run]], options: Options) -> GoalResult:
    rates = [median([run.rate for run in series]) for series in runs.values()]
    times = [
        format_times([taken for run in series for taken in run.times])
        for series in runs.values()
    ]
    bars = [_BAR * peer for peer in _PEER]
    counts = (sum(run.count for run in series) for series in runs.values())
    return GoalResult(
        "G12 propose, decide, outcome over HTTP",
        f"{join_values(f'{rate:.0f}' for rate in rates)} cycles a second at "
        f"{join_values(CONNECTIONS)} clients, {join_values(times)}",
        f">= {join_values(f'{bar:.0f}' for bar in bars)} ({_BAR:.0f} x a peer's)",
        all(rate >= bar for rate, bar in zip(rates, bars, strict=True)),
        f"n = {join_values(counts)}, {options.rounds} rounds",
    )

"""G4: proposing over HTTP through every middleware, two web processes and sixteen
connections, beside sixteen raw inserts and beside a ping of the same processes."""

from __future__ import annotations

import itertools
import json
import uuid
from dataclasses import dataclass

from . import floor, http_load, processes, product, tasks
from .asked import body
from .load import Run, clients, median
from .report import Line, Options, ms, say
from .seed import House

PROCESSES, CONNECTIONS = 2, 16
RATE, P99 = 0.4, 3.0


@dataclass(frozen=True, slots=True)
class Round:
    """The same stretch of each."""

    raw: Run
    ping: Run
    ours: Run

    @property
    def rate(self) -> float:
        return self.ours.rate / self.raw.rate

    @property
    def allowed(self) -> float:
        """The p99 that the bar allows, read strictly: only the ping's is tripled."""
        return P99 * self.ping.at(99) + self.raw.at(99)

    def __str__(self) -> str:
        return (
            f"{self.ours.rate:.0f}/s of {self.raw.rate:.0f}/s, p99 "
            f"{ms(self.ours.at(99))}; ping {ms(self.ping.at(99))}, "
            f"raw {ms(self.raw.at(99))}"
        )


def measure(house: House, options: Options) -> Line:
    """All three in turn."""
    rounds: list[Round] = []
    with processes.webs(PROCESSES) as ports:
        _one(ports, house, 0.5)
        for number in range(options.rounds):
            rounds.append(_one(ports, house, options.seconds))
            say(f"G4 round {number + 1}: {rounds[-1]}")
    return _line(rounds, options)


def _one(ports: list[int], house: House, seconds: float) -> Round:
    raw = clients(floor.inserter, threads=CONNECTIONS, seconds=seconds)
    ping = http_load.load(
        ports,
        lambda: http_load.request("GET", "/livez", {}),
        connections=CONNECTIONS,
        seconds=seconds,
    )
    ours = http_load.load(
        ports, _Agents(house).request, connections=CONNECTIONS, seconds=seconds
    )
    tasks.broker().flushdb()
    return Round(raw, ping, ours)


class _Agents:
    """The agents in turn; ten proposals of one thread follow one another."""

    def __init__(self, house: House) -> None:
        self.keys = house.keys
        self.run = uuid.uuid4().hex[:8]
        self.count = itertools.count()

    def request(self) -> bytes:
        number = next(self.count)
        # Sixteen at a time must not queue for one thread's lock.
        lane, turn = number % len(self.keys), number // len(self.keys)
        thread = f"{self.run}-{lane}-{turn // product.ACTIONS_A_THREAD}"
        headers = {
            "Authorization": f"Bearer {self.keys[lane]}",
            "Content-Type": "application/json",
            "Idempotency-Key": f"{self.run}-{number}",
        }
        sent = json.dumps(body(thread)).encode()
        return http_load.request("POST", "/api/v1/proposals", headers, sent)


def _line(rounds: list[Round], options: Options) -> Line:
    rate = median([one.rate for one in rounds])
    over = median([one.ours.at(99) / one.allowed for one in rounds])
    middle = sorted(rounds, key=lambda one: one.rate)[len(rounds) // 2]
    counts = " / ".join(
        str(sum(getattr(one, name).count for one in rounds))
        for name in ("ours", "raw", "ping")
    )
    return Line(
        "G4 HTTP propose",
        f"{rate:.2f} x the raw insert's rate, p99 {over:.2f} x what is allowed "
        f"({middle})",
        f"rate >= {RATE} x; p99 <= {P99:.0f} x ping's p99 + raw insert's",
        rate >= RATE and over <= 1,
        f"n = {counts} (ours, raw, ping), {options.rounds} rounds",
    )

"""Which letters were tried when, by what the workers wrote down (chaos/traces.py).

A try that its worker has given up may still arrive: the kernel goes on sending what a
cable that was out has kept back, and a server takes up late what waited at its door. So
it is tries that are counted: each brings one letter, and those begun in time excuse as
many."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from .options import LADDER, LEASE_S

POST = "d-"  # how the ids of letters begin
# Who never said that it was over was killed; it may have slept for a lease before, and
# for as long as a fault lets it oversleep. A cable is out for no longer than that.
LONGEST_S = 2 * LEASE_S + LADDER["TIME_LIMIT"]
Trip = tuple[float, float]


class Trips:
    """By letter, from when a worker took it up until it was over."""

    def __init__(self, traces: Path) -> None:
        self._of: dict[str, list[Trip]] = defaultdict(list)
        begun: dict[tuple[str, int, str], float] = {}
        for at, worker, pid, step, letter in _lines(traces):
            if not letter.startswith(POST):
                continue
            if step == "begun":
                begun[worker, pid, letter] = at
            elif step == "over" and (worker, pid, letter) in begun:
                self._of[letter].append((begun.pop((worker, pid, letter)), at))
        for (_, _, letter), at in begun.items():
            self._of[letter].append((at, at + LONGEST_S))

    def excuse(self, letter: str, known: float, at: float, arrived: int) -> bool:
        """Whether what arrived at this time, with as many of the letter as this by
        then, may have been begun by the known one."""
        overs = [over for began, over in self._of[letter] if began <= known]
        return arrived <= len(overs) and at <= max(overs) + LONGEST_S


def _lines(traces: Path) -> list[tuple[float, str, int, str, str]]:
    lines: list[tuple[float, str, int, str, str]] = []
    for file in traces.iterdir():
        lines += [tuple(json.loads(line)) for line in file.read_text().splitlines()]
    return sorted(lines)

"""Who had which message in hands, by what the workers wrote down (chaos/traces.py)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from journal.models import OutboxMessage


@dataclass
class Hold:
    """A message in a worker's hands."""

    worker: str
    received: float
    pid: int = 0
    ended: float = float("inf")


@dataclass
class Holds:
    """Who held what, by execution."""

    by_execution: dict[str, list[Hold]] = field(default_factory=dict)

    def of(self, execution: str) -> list[Hold]:
        return self.by_execution.get(execution, [])


def holds(traces: Path) -> Holds:
    """A killed process never says that it ended."""
    subjects = dict(OutboxMessage.objects.values_list("pk", "subject"))
    found: dict[str, list[Hold]] = defaultdict(list)
    for at, worker, pid, step, named in _lines(traces):
        execution = subjects.get(int(named), "") if named.isdigit() else named
        held = found[execution]
        if step == "received":
            held.append(Hold(worker, at))
            continue
        mine = [one for one in held if one.worker == worker and one.pid in (0, pid)]
        if step == "begun":
            hold = mine[0] if mine and not mine[0].pid else Hold(worker, at)
            hold.pid = pid
            if hold not in held:
                held.append(hold)
        elif mine:
            mine[-1].ended = at
    return Holds(dict(found))


def _lines(traces: Path) -> Iterator[tuple[float, str, int, str, str]]:
    lines: list[tuple[float, str, int, str, str]] = []
    for file in traces.iterdir():
        lines += [tuple(json.loads(line)) for line in file.read_text().splitlines()]
    yield from sorted(lines)

"""What was under way, from when until when, by the log and by those who asked.

Who had which message in hands, by what the workers wrote down (chaos/traces.py).

Which letters were tried when, by what the workers wrote down (chaos/traces.py).

A try that its worker has given up may still arrive: the kernel goes on sending what a
cable that was out has kept back, and a server takes up late what waited at its door. So
it is tries that are counted: each brings one letter, and those begun in time excuse as
many.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from journal.models import LogRecord, OutboxMessage
from reviews.models import ApprovalRequest, Execution

from .generator import RECALL_S
from .options import LADDER, LEASE_S
from .run_result import Ran

ENDS = {
    "execution.succeeded",
    "execution.failed",
    "execution.unknown",
    "execution.refused",
}
BEGINS = {"execution.queued", "execution.retried"}


@dataclass(frozen=True, slots=True)
class Span:
    """Something that was under way."""

    what: str  # execution, call, timer
    subject: str
    began: float
    ended: float
    webs: tuple[str, ...] = ()


def spans(ran: Ran) -> Iterator[Span]:
    """All of them, hit by something or not."""
    yield from _executions()
    yield from _calls(ran)
    yield from _timers()


def _executions() -> Iterator[Span]:
    """From being queued, or let run again, to an end. When an agent performs its own is
    up to the agent; what hits it on the way hits its calls."""
    began: dict[str, tuple[str, float]] = {}
    rows = LogRecord.objects.filter(kind__in=BEGINS | ENDS).order_by("id")
    ids = _execution_ids()
    for row in rows.iterator():
        leaf = json.loads(bytes(row.leaf))
        key = f"{row.proposal}/{leaf['revision']}"
        if row.kind in BEGINS and key in ids:
            began[key] = (ids[key], row.at.timestamp())
        elif key in began:
            subject, at = began.pop(key)
            yield Span("execution", subject, at, row.at.timestamp())


def _execution_ids() -> dict[str, str]:
    rows = Execution.objects.filter(by_agent=False).values_list(
        "proposal_id", "grant__revision__number", "pk"
    )
    return {f"{proposal}/{number}": pk for proposal, number, pk in rows}


def _calls(ran: Ran) -> Iterator[Span]:
    """Only those that were not answered at once were hit by anything."""
    for call in ran.notebook.calls:
        webs = tuple(f"web-{web}" for web in call.webs)
        yield Span("call", call.subject, call.began, call.ended, webs)


def _timers() -> Iterator[Span]:
    """From the moment that was due to the change that it brought."""
    due: dict[str, float] = {}
    kinds = {"request.recallable", "request.authorized", "request.expired"}
    rows = LogRecord.objects.filter(kind__in=kinds).order_by("id")
    expiries = dict(ApprovalRequest.objects.values_list("pk", "expires_at"))
    for row in rows.iterator():
        at, leaf = row.at.timestamp(), json.loads(bytes(row.leaf))
        if row.kind == "request.recallable":
            due[row.request] = at + RECALL_S
        elif row.kind == "request.expired":
            yield Span("timer", row.request, expiries[row.request].timestamp(), at)
        elif leaf["from"] == "recallable" and row.request in due:
            yield Span("timer", row.request, due.pop(row.request), at)


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
        for at, worker, pid, step, letter in _trip_lines(traces):
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


def _trip_lines(traces: Path) -> list[tuple[float, str, int, str, str]]:
    lines: list[tuple[float, str, int, str, str]] = []
    for file in traces.iterdir():
        lines += [tuple(json.loads(line)) for line in file.read_text().splitlines()]
    return sorted(lines)

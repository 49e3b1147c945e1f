"""What happened in a run: calls, faults, and what was under way when.

Agents and people record every call until its answer. The workers record which process
held which message and which webhook delivery (chaos/traces.py). The log says from when
until when an execution, a call or a timer was under way.

A delivery that its worker has given up may still arrive: the kernel goes on sending
what a cut has kept back, and a server takes up late what waited at its door. Attempts
are therefore counted: each brings one webhook, and those begun in time excuse as many.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from journal.models import LogRecord, OutboxMessage
from reviews.models import ApprovalRequest, Execution

from .generator import RECALL_S
from .options import LADDER, LEASE_S

ENDS = {
    "execution.succeeded",
    "execution.failed",
    "execution.unknown",
    "execution.refused",
}
BEGINS = {"execution.queued", "execution.retried"}


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the web by an agent or a person, from the first try to the answer."""

    what: str
    subject: str
    began: float
    ended: float
    webs: tuple[int, ...]  # which of them were asked, in order


@dataclass
class History:
    """What agents and people experienced. All threads of a run share it."""

    calls: list[Call] = field(default_factory=list)
    answered: dict[str, str] = field(default_factory=dict)  # key -> proposal
    ended: dict[str, str] = field(default_factory=dict)  # proposal -> status
    # What was refused or asked again, by whom: report.json has it for who looks closer.
    counts: Counter[str] = field(default_factory=Counter)
    troubles: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def impatient(self) -> set[str]:
        """The names of the threads that had trouble."""
        return {trouble.partition(":")[0] for trouble in self.troubles}

    def called(self, call: Call) -> None:
        with self._lock:
            self.calls.append(call)

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def trouble(self, what: str) -> None:
        """Record an answer that should not have come, or did not come in time."""
        with self._lock:
            self.troubles.append(what)


@dataclass
class Fault:
    """One fault as it happened. Times are of the clock on the wall."""

    kind: str
    at: float
    until: float  # a server answers again, or who was frozen or cut off goes on
    target: str = ""
    pids: tuple[int, ...] = ()
    slot: str = ""  # whose processes they are
    slots: tuple[str, ...] = ()  # all that were on a host

    @property
    def slept(self) -> bool:
        """Whether a process was frozen or cut off for longer than a lease."""
        return self.until > self.at + LEASE_S


@dataclass
class RunResult:
    """What a run leaves for the checkers. Times are of the clock on the wall."""

    began: float
    loaded: float  # the last fault was done
    ended: float
    history: History
    faults: list[Fault]
    kinds: list[str]  # of faults that this machine can have
    restarts: dict[str, int]
    left: dict[str, int] = field(default_factory=dict)  # what was still to come


@dataclass(frozen=True, slots=True)
class Span:
    """Something that was under way."""

    what: str  # execution, call, timer
    subject: str
    began: float
    ended: float
    webs: tuple[str, ...] = ()


def list_spans(result: RunResult) -> Iterator[Span]:
    """All spans of a run, hit by a fault or not."""
    yield from _executions()
    yield from _calls(result)
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


def _calls(result: RunResult) -> Iterator[Span]:
    """The calls that were not answered at once: no fault hit the others."""
    for call in result.history.calls:
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


Holds = dict[str, list[Hold]]  # which worker held which message, by execution


def read_holds(traces: Path) -> Holds:
    """Read what workers held. A killed process never says that it ended."""
    subjects = dict(OutboxMessage.objects.values_list("pk", "subject"))
    holds: Holds = defaultdict(list)
    for at, worker, pid, step, named in _read_lines(traces):
        execution = subjects.get(int(named), "") if named.isdigit() else named
        held = holds[execution]
        if step == "received":
            held.append(Hold(worker, at))
            continue
        own_holds = [
            hold for hold in held if hold.worker == worker and hold.pid in (0, pid)
        ]
        if step == "begun":
            hold = (
                own_holds[0] if own_holds and not own_holds[0].pid else Hold(worker, at)
            )
            hold.pid = pid
            if hold not in held:
                held.append(hold)
        elif own_holds:
            own_holds[-1].ended = at
    return holds


def _read_lines(traces: Path) -> list[tuple[float, str, int, str, str]]:
    """What all workers wrote, in the order of time."""
    lines: list[tuple[float, str, int, str, str]] = []
    for file in traces.iterdir():
        lines += [tuple(json.loads(line)) for line in file.read_text().splitlines()]
    return sorted(lines)


DELIVERY = "d-"  # how the ids of deliveries begin
# Who never said that it was over was killed; it may have slept for a lease before, and
# for as long as a fault lets it oversleep. A cable is out for no longer than that.
LONGEST_S = 2 * LEASE_S + LADDER["TIME_LIMIT"]
Attempt = tuple[float, float]


class DeliveryAttempts:
    """By delivery, from when a worker took it up until it was over."""

    def __init__(self, traces: Path) -> None:
        self._of: dict[str, list[Attempt]] = defaultdict(list)
        begun: dict[tuple[str, int, str], float] = {}
        for at, worker, pid, step, delivery in _read_lines(traces):
            if not delivery.startswith(DELIVERY):
                continue
            if step == "begun":
                begun[worker, pid, delivery] = at
            elif step == "over" and (worker, pid, delivery) in begun:
                self._of[delivery].append((begun.pop((worker, pid, delivery)), at))
        for (_, _, delivery), at in begun.items():
            self._of[delivery].append((at, at + LONGEST_S))

    def excuse(self, delivery: str, known: float, at: float, arrived: int) -> bool:
        """Whether what arrived at this time, with as many of the delivery as this by
        then, may have been begun by the known one."""
        overs = [over for began, over in self._of[delivery] if began <= known]
        return arrived <= len(overs) and at <= max(overs) + LONGEST_S

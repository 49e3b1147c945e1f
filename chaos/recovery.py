"""How long it took from the last fault that hit something until that was done.

A fault of PostgreSQL or Valkey hits whatever was under way, and counts from the moment
the server answers again; so does a cut host for what was on it. A killed or frozen
process hits what it held: what it had received, or begun and not ended
(chaos/trace.py). A killed web process hits the calls that were at it. Timers are hit by
whatever hits workers and servers."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.load import percentile
from journal.models import LogRecord, OutboxMessage
from reviews.models import ApprovalRequest, Execution

from .policy import RECALL_S
from .run import Ran
from .strike import Strike

SERVERS = {"postgres", "valkey", "flush", "outage"}
WORKERS = {"worker", "child", "pause", "point"}
ENDS = {
    "execution.succeeded",
    "execution.failed",
    "execution.unknown",
    "execution.refused",
}
BEGINS = {"execution.queued", "execution.retried"}
NEAR_S = 0.5  # around a broken point: when its task ended


@dataclass(frozen=True, slots=True)
class Span:
    """Something that was under way."""

    what: str  # execution, call, timer
    subject: str
    began: float
    ended: float
    webs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recovery:
    """From the last fault that hit it to its end."""

    span: Span
    hit_at: float
    kind: str

    @property
    def seconds(self) -> float:
        return self.span.ended - self.hit_at


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


def recoveries(ran: Ran, traces: Path) -> list[Recovery]:
    """Of everything that a fault hit, in the order of their ends."""
    holds = _holds(traces)
    spans = [*_executions(), *_calls(ran), *_timers()]
    found = [one for span in spans if (one := _of(span, ran.arsenal.strikes, holds))]
    return sorted(found, key=lambda one: one.span.ended)


def _of(span: Span, strikes: Sequence[Strike], holds: Holds) -> Recovery | None:
    hits = [(at, s.kind) for s in strikes if (at := _hit(span, s, holds)) is not None]
    if not hits:
        return None
    at, kind = max(hits)
    return Recovery(span, at, kind)


def _hit(span: Span, strike: Strike, holds: Holds) -> float | None:
    """When this fault hit it, if it did."""
    if strike.at > span.ended or max(strike.at, strike.until) < span.began:
        return None
    over = min(max(strike.until, span.began), span.ended)
    if strike.kind in SERVERS:
        return over
    if strike.kind == "cut":
        return over if _cut_off(span, strike, holds) else None
    if strike.at < span.began:
        return None
    if span.what == "call":
        near = strike.kind == "web" and strike.target in span.webs
        return strike.at if near or strike.kind == "point" else None
    if strike.kind not in WORKERS:
        return None
    if span.what == "timer":
        return strike.at
    held = any(_had(hold, strike) for hold in holds.of(span.subject))
    return strike.at if held else None


def _cut_off(span: Span, strike: Strike, holds: Holds) -> bool:
    """Whether it was at somebody on that host. A timer may have been anybody's."""
    if span.what == "call":
        return any(web in strike.slots for web in span.webs)
    if span.what == "timer":
        return True
    return any(
        hold.worker in strike.slots
        and hold.received <= strike.until
        and hold.ended >= strike.at
        for hold in holds.of(span.subject)
    )


def _had(hold: Hold, strike: Strike) -> bool:
    """Whether the message was in hands that this fault struck."""
    if not hold.received <= strike.at <= hold.ended + NEAR_S:
        return False
    if strike.kind in {"pause", "point"} and strike.pids:  # all of it slept
        return hold.worker == strike.slot and strike.at <= hold.ended
    if strike.kind == "child":
        return hold.pid in strike.pids and strike.at <= hold.ended
    if strike.kind == "point":  # broken or killed where it was: nobody knows who
        return hold.pid != 0 and (
            hold.ended == float("inf") or abs(hold.ended - strike.at) < NEAR_S
        )
    return hold.worker == strike.target and strike.at <= hold.ended


def _holds(traces: Path) -> Holds:
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


def _executions() -> Iterator[Span]:
    """From being queued, or let run again, to an end."""
    began: dict[str, tuple[str, float]] = {}
    rows = LogRecord.objects.filter(kind__in=BEGINS | ENDS).order_by("id")
    ids = _execution_ids()
    for row in rows.iterator():
        leaf = json.loads(bytes(row.leaf))
        key = f"{row.proposal}/{leaf['revision']}"
        if row.kind in BEGINS:
            began[key] = (ids.get(key, ""), row.at.timestamp())
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


def summary(found: Sequence[Recovery], what: str) -> dict[str, Any]:
    """How many of a kind there were, and how long they took."""
    times = [one.seconds for one in found if one.span.what == what]
    return {
        "n": len(times),
        "p50": percentile(times, 50) if times else 0.0,
        "p99": percentile(times, 99) if times else 0.0,
        "most": max(times, default=0.0),
    }


def slow(found: Sequence[Recovery], bound_s: float, began: float) -> list[str]:
    """What took longer, and each step of it by the log, in seconds of the run."""
    late = [r for r in found if r.span.what == "execution" and r.seconds > bound_s]
    rows = Execution.objects.in_bulk([one.span.subject for one in late])
    known = ((one, rows.get(one.span.subject)) for one in late)
    return [_history(one, row, began) for one, row in known if row is not None]


def _history(one: Recovery, row: Execution, began: float) -> str:
    records = LogRecord.objects.filter(proposal=row.proposal_id).order_by("id")
    steps = [f"{r.at.timestamp() - began:.1f} {r.kind}" for r in records]
    hit = f"{one.seconds:.1f} s after {one.kind} at {one.hit_at - began:.1f}"
    return f"{row.pk}: {hit}; {', '.join(steps)}"

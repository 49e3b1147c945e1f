"""How long it took from the last fault that hit something until that was done.

A fault of PostgreSQL or Valkey hits whatever was under way, and counts from the moment
the server answers again; so does a cut host for what was on it. A killed or frozen
process hits what it held: what it had received, or begun and not ended
(chaos/traces.py). A killed web process hits the calls that were at it. Timers are hit
by whatever hits workers and servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.load import percentile
from journal.models import LogRecord
from reviews.models import Execution

from .history import Fault, Hold, Holds, RunResult, Span, list_spans, read_holds

SERVERS = {"postgres", "valkey", "flush", "outage"}
WORKERS = {"worker", "child", "pause", "point"}
NEAR_S = 0.5  # around a broken point: when its task ended


@dataclass(frozen=True, slots=True)
class Recovery:
    """A span from the last fault that hit it to its end."""

    span: Span
    hit_at: float
    kind: str

    @property
    def seconds(self) -> float:
        return self.span.ended - self.hit_at


def list_recoveries(result: RunResult, traces: Path) -> list[Recovery]:
    """The recoveries of all spans that a fault hit, in the order of their ends."""
    faults, held = result.faults, read_holds(traces)
    recoveries = [
        recovery
        for span in list_spans(result)
        if (recovery := find_recovery(span, faults, held))
    ]
    return sorted(recoveries, key=lambda recovery: recovery.span.ended)


def find_recovery(span: Span, faults: Sequence[Fault], held: Holds) -> Recovery | None:
    hits = [(at, s.kind) for s in faults if (at := _hit(span, s, held)) is not None]
    if not hits:
        return None
    at, kind = max(hits)
    return Recovery(span, at, kind)


def _hit(span: Span, fault: Fault, held: Holds) -> float | None:
    """When this fault hit it, if it did."""
    if fault.at > span.ended or max(fault.at, fault.until) < span.began:
        return None
    over = min(max(fault.until, span.began), span.ended)
    if fault.kind in SERVERS:
        return over
    if fault.kind == "cut":
        return over if _cut_off(span, fault, held) else None
    if fault.at < span.began:
        return None
    if span.what == "call":
        near = fault.kind == "web" and fault.target in span.webs
        return fault.at if near or fault.kind == "point" else None
    if fault.kind not in WORKERS:
        return None
    if span.what == "timer":
        return fault.at
    struck = any(_had(hold, fault) for hold in held.get(span.subject, []))
    return fault.at if struck else None


def _cut_off(span: Span, fault: Fault, held: Holds) -> bool:
    """Whether a process on that host had the span. Any worker may have had a timer."""
    if span.what == "call":
        return any(web in fault.slots for web in span.webs)
    if span.what == "timer":
        return True
    return any(
        hold.worker in fault.slots
        and hold.received <= fault.until
        and hold.ended >= fault.at
        for hold in held.get(span.subject, [])
    )


def _had(hold: Hold, fault: Fault) -> bool:
    """Whether this fault hit the process that held the message."""
    if not hold.received <= fault.at <= hold.ended + NEAR_S:
        return False
    if fault.kind in {"pause", "point"} and fault.pids:  # all of it slept
        return hold.worker == fault.slot and fault.at <= hold.ended
    if fault.kind == "child":
        return hold.pid in fault.pids and fault.at <= hold.ended
    if fault.kind == "point":  # broken or killed where it was: nobody knows who
        return hold.pid != 0 and (
            hold.ended == float("inf") or abs(hold.ended - fault.at) < NEAR_S
        )
    return hold.worker == fault.target and fault.at <= hold.ended


def summarise_recoveries(recoveries: Sequence[Recovery], what: str) -> dict[str, Any]:
    """How many of a kind there were, and how long they took."""
    times = [recovery.seconds for recovery in recoveries if recovery.span.what == what]
    return {
        "n": len(times),
        "p50": percentile(times, 50) if times else 0.0,
        "p99": percentile(times, 99) if times else 0.0,
        "most": max(times, default=0.0),
    }


def describe_slow(
    recoveries: Sequence[Recovery], bound_s: float, began: float
) -> list[str]:
    """What took longer, and each step of it by the log, in seconds of the run."""
    late = [r for r in recoveries if r.span.what == "execution" and r.seconds > bound_s]
    rows = Execution.objects.in_bulk([r.span.subject for r in late])
    return [
        _describe(r, rows[r.span.subject], began)
        for r in late
        if r.span.subject in rows
    ]


def _describe(recovery: Recovery, row: Execution, began: float) -> str:
    records = LogRecord.objects.filter(proposal=row.proposal_id).order_by("id")
    steps = [f"{r.at.timestamp() - began:.1f} {r.kind}" for r in records]
    at = f"{recovery.kind} at {recovery.hit_at - began:.1f}"
    return f"{row.pk}: {recovery.seconds:.1f} s after {at}; {', '.join(steps)}"

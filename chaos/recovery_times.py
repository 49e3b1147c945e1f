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

from .fault import Strike
from .history import Hold, Holds, Span, holds, spans
from .run_result import Ran

SERVERS = {"postgres", "valkey", "flush", "outage"}
WORKERS = {"worker", "child", "pause", "point"}
NEAR_S = 0.5  # around a broken point: when its task ended


@dataclass(frozen=True, slots=True)
class Recovery:
    """From the last fault that hit it to its end."""

    span: Span
    hit_at: float
    kind: str

    @property
    def seconds(self) -> float:
        return self.span.ended - self.hit_at


def recoveries(ran: Ran, traces: Path) -> list[Recovery]:
    """Of everything that a fault hit, in the order of their ends."""
    strikes, held = ran.arsenal.strikes, holds(traces)
    found = [one for span in spans(ran) if (one := _of(span, strikes, held))]
    return sorted(found, key=lambda one: one.span.ended)


def _of(span: Span, strikes: Sequence[Strike], held: Holds) -> Recovery | None:
    hits = [(at, s.kind) for s in strikes if (at := _hit(span, s, held)) is not None]
    if not hits:
        return None
    at, kind = max(hits)
    return Recovery(span, at, kind)


def _hit(span: Span, strike: Strike, held: Holds) -> float | None:
    """When this fault hit it, if it did."""
    if strike.at > span.ended or max(strike.at, strike.until) < span.began:
        return None
    over = min(max(strike.until, span.began), span.ended)
    if strike.kind in SERVERS:
        return over
    if strike.kind == "cut":
        return over if _cut_off(span, strike, held) else None
    if strike.at < span.began:
        return None
    if span.what == "call":
        near = strike.kind == "web" and strike.target in span.webs
        return strike.at if near or strike.kind == "point" else None
    if strike.kind not in WORKERS:
        return None
    if span.what == "timer":
        return strike.at
    struck = any(_had(hold, strike) for hold in held.of(span.subject))
    return strike.at if struck else None


def _cut_off(span: Span, strike: Strike, held: Holds) -> bool:
    """Whether it was at somebody on that host. A timer may have been anybody's."""
    if span.what == "call":
        return any(web in strike.slots for web in span.webs)
    if span.what == "timer":
        return True
    return any(
        hold.worker in strike.slots
        and hold.received <= strike.until
        and hold.ended >= strike.at
        for hold in held.of(span.subject)
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

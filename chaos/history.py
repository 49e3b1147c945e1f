"""What was under way, from when until when, by the log and by those who asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from journal.models import LogRecord
from reviews.models import ApprovalRequest, Execution

from .policy import RECALL_S
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

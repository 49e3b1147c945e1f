"""Whether each request ended as its kind calls for, as its agent was told, and without
an alarm that says that the gate broke a promise."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from django.db.models import Q

from agents.representation import EXECUTION_SAYS, REQUEST_SAYS
from reviews.choices import AlarmKind, ClosedHow, ExecutionStatus, RequestStatus
from reviews.models import Alarm, Execution, Proposal

from .generator import KINDS, read_thread

X, R = ExecutionStatus, RequestStatus
DONE = frozenset({X.SUCCEEDED})
ENDS: dict[str, frozenset[str]] = {
    "reject": frozenset({R.REJECTED}),
    "expire": frozenset({R.EXPIRED}),
    "withdraw": frozenset({R.WITHDRAWN}),
    # Whoever answers is another than whoever stops it: either may come first.
    "stop": frozenset({R.WITHDRAWN, X.REFUSED, X.SUCCEEDED}),
    "decline": frozenset({X.FAILED}),
    "again": frozenset({X.FAILED, X.SUCCEEDED}),
}
NEVER_RUNS = {"reject", "expire", "withdraw"}
# What nobody knows, and what a person or the service said of it later.
DOUBTED = frozenset({X.UNKNOWN, X.FAILED, X.SUCCEEDED})
TRIED_OUT = "tried_out"  # no try left, and its service knows nothing of it
SAYS = {str(k): v for k, v in (EXECUTION_SAYS | REQUEST_SAYS).items()} | {
    "blocked": "blocked"
}
# A worker that slept through its lease (the audit's `belied`); what stood still while
# a server was down, and ran after all.
EXPECTED = Q(kind=AlarmKind.LATE_REPORT) | Q(
    kind=AlarmKind.NEVER_EXECUTED, closed_how=ClosedHow.ITSELF
)


@dataclass
class Ends:
    """Sentences about what is wrong, and in how many it was looked for."""

    unasked: list[str] = field(default_factory=list)
    otherwise: list[str] = field(default_factory=list)
    alarming: list[str] = field(default_factory=list)
    asked: int = 0
    seen: int = 0

    @property
    def violations(self) -> dict[str, list[str]]:
        """Everything that must be empty, by its name."""
        return {
            "ends that nobody asked for": self.unasked,
            "ends told otherwise": self.otherwise,
            "alarms": self.alarming,
        }

    @property
    def claims(self) -> Iterator[tuple[str, int, int]]:
        """What must hold, on how many trials, and how often it did not."""
        asked = self.asked
        yield "requests that ended as nobody asked", asked, len(self.unasked)
        yield "ends told to an agent otherwise", self.seen, len(self.otherwise)
        yield "alarms of a broken promise", asked, len(self.alarming)


def look(told: Mapping[str, str], given_up: Container[str] = ()) -> Ends:
    """Once all is quiet. `told` is the last that agents heard, by proposal; `given_up`
    are threads whose agent or person went away before the end."""
    found, excused = Ends(), set()
    rows = Proposal.objects.select_related("request").prefetch_related("executions")
    for row in rows:
        status, execution = end_of(row)
        if row.thread in given_up or (execution and execution.code == TRIED_OUT):
            excused.add(row.pk)
        else:
            _judge(found, row, status, execution, told.get(row.pk))
    raised = Alarm.objects.exclude(EXPECTED).exclude(proposal__in=excused)
    found.alarming = [f"{alarm.kind}: {alarm.subject}" for alarm in raised]
    return found


def _judge(
    found: Ends,
    row: Proposal,
    status: str,
    execution: Execution | None,
    said: str | None,
) -> None:
    found.asked += 1
    if status not in _allowed(row, execution):
        found.unasked.append(f"{row.thread}: {status}")
    if said is None:
        return
    found.seen += 1
    words = {SAYS[status]}
    if _was_doubted(execution):
        words.add(EXECUTION_SAYS[X.UNKNOWN])
    if said not in words:
        found.otherwise.append(f"{row.thread}: {status}, and its agent heard {said}")


def end_of(row: Proposal) -> tuple[str, Execution | None]:
    """Where it stands, and the execution that says so."""
    executions = list(row.executions.all())
    if executions:
        return str(executions[-1].status), executions[-1]
    request = getattr(row, "request", None)
    return ("blocked" if request is None else str(request.status)), None


def _allowed(row: Proposal, execution: Execution | None) -> frozenset[str]:
    number, kind = read_thread(row.thread)
    assert kind in KINDS, row.thread
    allowed = ENDS.get(kind, DONE)
    if kind == "recall" and row.request.version > 1:
        allowed = ENDS["reject"]
    if kind == "stop" and number % 2:  # no reviewer answers it
        allowed = ENDS["withdraw"]
    if kind not in NEVER_RUNS and _was_doubted(execution):
        allowed |= DOUBTED
    return allowed


def _was_doubted(execution: Execution | None) -> bool:
    return execution is not None and execution.unknown_at is not None

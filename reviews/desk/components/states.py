"""The label of a request's or an execution's state: one word and one icon, never colour
alone.

EXPIRED is never called rejected, authorized is never called executed, and an unknown
outcome is never called failed (gate.md sections 3 and 7).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from journal.clock import time_of_day
from reviews.choices import ExecutionStatus, RequestStatus
from reviews.effects.wording import span
from reviews.grants import uncertain
from reviews.models import ApprovalRequest, Execution
from reviews.stops import incidents

from .holding import Holding


@dataclass(frozen=True, slots=True)
class State:
    """A state as the strip, a row or the outcome shows it: icon, words and what
    follows."""

    key: str
    word: str
    icon: str = "wait"
    quarters: int | None = None
    note: str = ""
    at: datetime | None = None  # the time in `word`
    note_at: datetime | None = None  # the time in `note`
    until: datetime | None = None
    until_words: str = ""
    left: timedelta | None = None

    @property
    def until_said(self) -> str:
        """The time left when the page was made, for browsers without the counting
        script."""
        return self.until_words.replace("{}", span(self.left))


@dataclass(frozen=True, slots=True)
class Tally:
    """Approvals given and required over the open steps, without names."""

    given: int
    required: int

    @property
    def squares(self) -> list[bool]:
        """One square for each required approval; True for those given."""
        return [place < self.given for place in range(self.required)]

    @property
    def said(self) -> str:
        return f"{self.given} of {self.required}"


def of_request(
    request: ApprovalRequest,
    execution: Execution | None,
    tally: Tally,
    *,
    cause: str,
    now: datetime,
    since: datetime | None = None,
    held: Holding | None = None,
    by: str = "",
    behind: bool = False,
) -> State:
    """The state of a request; once it is authorized, that of its execution.

    `since` is when the version was sealed, `by` the name of the person who rejected it,
    `held` the hold on it. `behind`: it waits for other members of its batch.
    """
    if request.status == RequestStatus.PENDING:
        return _held(_pending(request, tally, cause, now, since), held)
    if request.status == RequestStatus.RECALLABLE and tally.given < tally.required:
        return State("stuck", "Held: votes are missing. Nothing runs.", icon="wait")
    if request.status == RequestStatus.RECALLABLE:
        return State(
            "recallable",
            "Approved,",
            quarters=1,
            until=request.recall_until,
            until_words="runs in {}",
            left=request.recall_until - now if request.recall_until else None,
        )
    if request.status == RequestStatus.AUTHORIZED:
        if behind:
            return State("queued", "Approved, waits in its batch", icon="wait")
        return of_execution(execution)
    return _ended(request, by)


def _held(state: State, held: Holding | None) -> State:
    """The hold comes first; the state becomes its note."""
    if held is None or held.free or state.key == "expired":
        return state
    if held.mine:
        said = f"You hold this until {time_of_day(held.until)}"
        return _beside(state, State(state.key, said, icon="hold", at=held.until))
    said = f"{held.by} is deciding (since {time_of_day(held.since)})"
    return _beside(state, State("held", said, quarters=2, at=held.since))


def _beside(state: State, holds: State) -> State:
    note = "" if state.word == "Waiting" else state.word
    return replace(holds, note=note, note_at=state.at)


def _pending(
    request: ApprovalRequest,
    tally: Tally,
    cause: str,
    now: datetime,
    since: datetime | None,
) -> State:
    if not incidents.is_open(request, now):
        return _expired(request)
    if tally.given:
        said = f"{tally.said} approvals"
        return State("waiting", said, quarters=2)
    if cause in {"escalated", "verifier"}:
        clock = f" since {time_of_day(since)}" if since else ""
        return State("escalated", f"With supervisors{clock}", icon="up", at=since)
    if cause == "returned":
        return State("waiting", "Returned with guidance", icon="back")
    if cause == "revoked":
        return State("waiting", "Asked again: an approval was revoked", icon="back")
    if cause == "recalled":
        return State("waiting", "Recalled. Nothing was executed.", icon="back")
    return State("waiting", "Waiting")


def _expired(request: ApprovalRequest) -> State:
    at = request.expires_at
    said = f"Expired {time_of_day(at)}. {uncertain.said_of(request)}"
    return State("expired", said, icon="void", at=at)


def _ended(request: ApprovalRequest, by: str) -> State:
    at = request.settled_at
    clock = f" {time_of_day(at)}" if at else ""
    who = f" by {by}" if by else ""
    return {
        RequestStatus.REJECTED: State(
            "rejected", f"Rejected{who}{clock}", icon="no", at=at
        ),
        RequestStatus.EXPIRED: _expired(request),
        RequestStatus.WITHDRAWN: State(
            "withdrawn", f"Withdrawn{clock}", icon="stop", at=at
        ),
        RequestStatus.SUPERSEDED: State(
            "superseded", f"Replaced by a later proposal{clock}", icon="void", at=at
        ),
    }[RequestStatus(request.status)]


def of_execution(execution: Execution | None) -> State:
    """The state of an authorized effect; None is an execution that does not exist
    yet."""
    if execution is None:
        return State("authorized", "Authorized, not started", quarters=1)
    at = execution.finished_at or execution.claimed_at
    clock = f" {time_of_day(at)}" if at else ""
    status = ExecutionStatus(execution.status)
    if status is ExecutionStatus.QUEUED and execution.by_agent:
        return State("authorized", "Authorized, waits for the agent", quarters=1)
    if status is ExecutionStatus.QUEUED and execution.attempts and execution.code:
        said = f"Failed without effect, tried again at {time_of_day(execution.due_at)}"
        return State("queued", said, icon="wait", at=execution.due_at)
    return {
        ExecutionStatus.QUEUED: State("queued", "Approved, starts now", quarters=1),
        ExecutionStatus.CLAIMED: State(
            "running", f"Running since{clock}", icon="run", at=at
        ),
        ExecutionStatus.SUCCEEDED: State("executed", f"Done{clock}", icon="ok", at=at),
        ExecutionStatus.FAILED: State(
            "failed", f"Failed{clock}. Nothing was changed.", icon="no", at=at
        ),
        ExecutionStatus.UNKNOWN: State(
            "unknown", "Outcome unknown. A person must say.", icon="ask"
        ),
        ExecutionStatus.REFUSED: State(
            "refused", f"Refused{clock}. Nothing was executed.", icon="void", at=at
        ),
    }[status]

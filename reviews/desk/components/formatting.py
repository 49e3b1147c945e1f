"""How a deadline looks: the moment, what is left of it, and a clock in quarters.

Which attempt an execution is at, of as many as its tool allows.

A filter as a select: its options, and which of them is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from journal.clock import time_of_day
from reviews.choices import ExecutionStatus
from reviews.models import ApprovalRequest, Execution
from reviews.stops import incidents

URGENT = 0.2  # of the whole time; never louder before (ux.md 1b, Swaroop 2023)


@dataclass(frozen=True, slots=True)
class Clock:
    """A deadline as a page shows it; `quarters` of the face are still full. `frozen`:
    what is left stays as it is, under a declared incident."""

    at: datetime
    left: timedelta
    quarters: int
    urgent: bool
    frozen: bool = False


def until(at: datetime, *, since: datetime, now: datetime) -> Clock:
    """The clock of a deadline that was set at `since`."""
    left = max(at - now, timedelta(0))
    share = left / max(at - since, timedelta(seconds=1))
    return Clock(
        at=at,
        left=left,
        quarters=min(math.ceil(share * 4), 4),
        urgent=share < URGENT,
    )


def of(request: ApprovalRequest, now: datetime) -> Clock:
    """The clock of an open request, which may stand still."""
    frozen = request.frozen_through is not None
    left = incidents.left(request, now)
    found = until(now + left, since=now + left - incidents.waited(request), now=now)
    urgent = found.urgent and not frozen
    return replace(found, at=request.expires_at, urgent=urgent, frozen=frozen)


def which(execution: Execution, most: int) -> str:
    """The attempt that runs, or that comes next. A person may have one tried again
    once there were `most`: that one is of no number."""
    waits = execution.status == ExecutionStatus.QUEUED
    number = execution.attempts + 1 if waits else execution.attempts
    return f"Attempt {number} of {most}" if number <= most else f"Attempt {number}"


def coming(execution: Execution, most: int) -> str:
    """The next one of what is queued, and when."""
    return f"{which(execution, most)}, next at {time_of_day(execution.due_at)}"


def again(execution: Execution, most: int) -> str:
    """The same where it is not the first; empty where it is."""
    if execution.status == ExecutionStatus.QUEUED:
        return coming(execution, most) if execution.attempts else ""
    return which(execution, most) if execution.attempts > 1 else ""


@dataclass(frozen=True, slots=True)
class Option:
    value: str
    label: str
    selected: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """One filter as a select."""

    name: str
    label: str
    options: list[Option]


def choice(name: str, label: str, said: Mapping[str, str], chosen: str) -> Choice:
    """A select of these values and their labels."""
    options = [Option(value, text, value == chosen) for value, text in said.items()]
    return Choice(name, label, options)

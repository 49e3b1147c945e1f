"""Which attempt an execution is at, of as many as its tool allows."""

from __future__ import annotations

from journal.clock import time_of_day
from reviews.choices import ExecutionStatus
from reviews.models import Execution


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

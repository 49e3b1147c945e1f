"""Small values for pages: deadlines as clocks, attempt numbers, filters as selects and
reason codes as options."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from journal.clock import format_time
from reviews.administration.queue_presets import OfferedPreset
from reviews.choices import REASON_LABELS, VERDICT_SPECS, ExecutionStatus, Verdict
from reviews.grants.grants import GrantConditions
from reviews.models import ApprovalRequest, Execution
from reviews.stops import incidents

# Of the whole time. Not earlier: people who feel hurried rely more on the agent's words
# (Swaroop et al. 2023).
URGENT_SHARE = 0.2


def round_took(milliseconds: float) -> timedelta:
    """How long a decision took, to the whole second that every page prints."""
    return timedelta(seconds=round(milliseconds / 1000))


@dataclass(frozen=True, slots=True)
class DeadlineClock:
    """A deadline as a page shows it.

    `left` is the time until it, `quarters` how many quarters of the clock face are
    full. `frozen`: a declared incident holds `left` still.
    """

    at: datetime
    left: timedelta
    quarters: int
    urgent: bool
    frozen: bool = False


def build_clock(at: datetime, *, since: datetime, now: datetime) -> DeadlineClock:
    """The clock of a deadline `at` that was set at `since`."""
    left = max(at - now, timedelta(0))
    share = left / max(at - since, timedelta(seconds=1))
    return DeadlineClock(
        at=at,
        left=left,
        quarters=min(math.ceil(share * 4), 4),
        urgent=share < URGENT_SHARE,
    )


def build_request_clock(request: ApprovalRequest, now: datetime) -> DeadlineClock:
    """The clock of an open request; an incident may have frozen it."""
    frozen = request.frozen_through is not None
    left = incidents.compute_time_left(request, now)
    clock = build_clock(
        now + left, since=now + left - incidents.compute_time_given(request), now=now
    )
    urgent = clock.urgent and not frozen
    return replace(clock, at=request.expires_at, urgent=urgent, frozen=frozen)


def format_attempt(execution: Execution, most: int) -> str:
    """The running or next attempt as `Attempt 2 of 3`. An attempt that a person asked
    for after all `most` are used has no total."""
    waits = execution.status == ExecutionStatus.QUEUED
    number = execution.attempts + 1 if waits else execution.attempts
    return f"Attempt {number} of {most}" if number <= most else f"Attempt {number}"


def format_next_attempt(execution: Execution, most: int) -> str:
    return f"{format_attempt(execution, most)}, next at {format_time(execution.due_at)}"


def format_repeat(execution: Execution, most: int) -> str:
    """The attempt, only where it is not the first; else empty."""
    if execution.status == ExecutionStatus.QUEUED:
        return format_next_attempt(execution, most) if execution.attempts else ""
    return format_attempt(execution, most) if execution.attempts > 1 else ""


@dataclass(frozen=True, slots=True)
class SelectOption:
    value: str
    label: str
    selected: bool


@dataclass(frozen=True, slots=True)
class FilterSelect:
    name: str
    label: str
    options: list[SelectOption]


def build_filter_select(
    name: str, label: str, labels: Mapping[str, str], chosen: str
) -> FilterSelect:
    """Build a select; `said` has the labels by value, in their order."""
    options = [
        SelectOption(value, text, value == chosen) for value, text in labels.items()
    ]
    return FilterSelect(name, label, options)


def list_reason_options(
    verdict: Verdict, chosen: str, preset: OfferedPreset
) -> list[SelectOption]:
    """The reason codes that the queue of this preset offers for a verdict, and the one
    that was chosen before it was no longer offered."""
    offered = [*preset.list_reasons(verdict)]
    offered += [
        code
        for code in VERDICT_SPECS[verdict].reasons
        if code == chosen and code not in offered
    ]
    return [
        SelectOption(code.value, REASON_LABELS[code], code.value == chosen)
        for code in offered
    ]


def format_times(count: int) -> str:
    """`once`, `twice`, `14 times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def format_times_asked(joined: int) -> str:
    """How often an action was proposed: its first call and those that joined it."""
    return f"Proposed {format_times(joined + 1)}"


@dataclass(frozen=True, slots=True)
class ConditionLine:
    """One condition of an approval: a time, or a value, which is untrusted text."""

    label: str
    at: datetime | None = None
    value: str = ""


def list_condition_lines(conditions: GrantConditions) -> list[ConditionLine]:
    times = (("Not before", conditions.not_before), ("Not after", conditions.not_after))
    return [
        *(ConditionLine(label, at) for label, at in times if at is not None),
        *(
            ConditionLine(
                f"Only if {condition.field} is",
                None,
                format_condition_value(condition.value),
            )
            for condition in conditions.expected
        ),
    ]


def format_condition_value(value: object) -> str:
    """A value of a reading as text; a text is itself."""
    return value if isinstance(value, str) else json.dumps(value)

"""The page of one alarm: its facts, the reports, its history, and what this person can
do."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from journal import canonical
from journal.errors import DomainError, NotFound
from policies.models import Person
from reviews.alarms import standing as alarms
from reviews.choices import (
    EXECUTION_SPECS,
    AlarmKind,
    AlarmStatus,
    ClosedHow,
    ExecutionStatus,
)
from reviews.effects.wording import flatten_value
from reviews.models import Alarm, Execution

from ..components import retry
from ..components.badges import select_visible_alarms
from ..components.retry import LateReportLine
from . import lists
from .lists import AlarmLine

# Labels of facts; a fact that is not here is labelled with its own name.
FACT_LABELS = {
    "code": "Reason",
    "reported_hash": "Reported content",
    "granted_hash": "Approved content",
    "fence": "Reported attempt",
    "last_fence": "Last attempt",
    "taken": "Report used",
    "count": "Counted",
    "messages": "Messages dropped",
    "sweeps": "Late background tasks",
    "found": "Found by",
    "stage": "Detected",
    "lacking": "People who can decide",
    "waiting": "Records waiting when it was raised",
    "since": "Oldest of them",
    "pid": "Database session (pid)",
    "application": "Program of that session",
    "open_seconds": "Seconds its transaction had been open",
    "risk": "Risk level",
    "total": "Out of",
    "days": "Days that are counted",
    "from_timeline": "Former timeline",
    "hosts": "Hosts that found their newest record",
}
# Our own codes in words.
CODE_WORDS = {
    "window_closed": "The execution window ended",
    "precondition": "The record it would change had changed",
    "policy_tightened": "The policy now requires more approval",
    "approver_revoked": "An approver no longer has authority",
    "tool_changed": "The tool changed",
    "verifier": "A verifier refused it",
    "bytes_changed": "The stored content differs from what was approved",
    "votes_missing": "Required votes are missing",
    "votes_unrecorded": "A vote was not cast through Counterseal",
    "standing_unrecorded": "A standing grant was not issued through Counterseal",
    "window": "At the end of the undo window",
    "status": "When its status was checked",
    "waiting": "While it waited for its first attempt",
    "effect": "Before execution",
    "tried_out": "All attempts were used",
    "unread": "The current state could not be read",
    "look_up": "When the tool's service was asked",
    "recorded": "When the result was recorded",
    "stored": "Before execution",
}
# Facts that hold a status of the execution, and the statuses in words.
STATUS_FACTS = {"recorded", "reported"}
STATUS_WORDS = {
    **{status: spec.label for status, spec in EXECUTION_SPECS.items()},
    **retry.REPORT_WORDS,
}
# Facts that the list of reports says as well.
REPORT_FACTS = {"reported", "taken"}

SELF_CLOSED_WORDS: dict[str, str] = {
    AlarmKind.NEVER_EXECUTED: "the action ran after all",
    AlarmKind.NOT_TAKEN_UP: "the action started, or can no longer run",
    AlarmKind.DELIVERY_DEAD: "it was delivered",
    AlarmKind.RESTORED: "two people confirmed the restore",
    AlarmKind.UNDECIDABLE: "people can decide the request again, or it is resolved",
    AlarmKind.STANDSTILL: "everything runs again",
    AlarmKind.LOG_STALLED: "the log has caught up",
    AlarmKind.THRESHOLD: "the figure is back within its threshold",
}


@dataclass(frozen=True, slots=True)
class AlarmStep:
    """One event in the life of an alarm. `note` is what a person wrote."""

    word: str
    at: datetime
    detail: str = ""
    note: str = ""
    by: Person | None = None


@dataclass(frozen=True, slots=True)
class AlarmPage:
    """One alarm in full."""

    line: AlarmLine
    facts: list[tuple[str, str]]
    reports: list[LateReportLine]
    steps: list[AlarmStep]
    may_acknowledge: bool
    may_close: bool
    shown: str  # what the form sends back
    why_not: str
    unknown_url: str


def load_alarm_page(person: Person, pk: int) -> AlarmPage:
    """Load the page. Raises NotFound for an unknown alarm, or one that this person may
    not see."""
    row = (
        lists.annotate_alarms(select_visible_alarms(person))
        .select_related("closed_by")
        .filter(pk=pk)
        .first()
    )
    if row is None:
        raise NotFound
    why_not = _describe_refusal(person, row)
    standing = row.status != AlarmStatus.CLOSED
    execution = Execution.objects.select_related("grant").filter(pk=row.subject).first()
    reports = retry.list_late_reports(execution) if execution else []
    return AlarmPage(
        line=lists.build_alarm_lines([row])[0],
        facts=_list_facts(row, left_out=REPORT_FACTS if reports else set()),
        reports=reports,
        steps=_list_steps(row),
        may_acknowledge=row.status == AlarmStatus.OPEN and not why_not,
        may_close=standing and not why_not,
        shown=canonical.format_shown(alarms.build_shown_alarm(row)),
        why_not=why_not if standing else "",
        unknown_url=_build_unknown_url(execution),
    )


def _build_unknown_url(execution: Execution | None) -> str:
    if execution is None or execution.status != ExecutionStatus.UNKNOWN:
        return ""
    return reverse("reviews:unknown_one", args=[execution.pk])


def _describe_refusal(person: Person, alarm: Alarm) -> str:
    try:
        alarms.check_may_answer(person, alarm)
    except DomainError as error:
        return error.cause
    return ""


def _list_facts(alarm: Alarm, *, left_out: Set[str]) -> list[tuple[str, str]]:
    facts = [(n, v) for n, v in flatten_value(alarm.data) if v != alarm.subject]
    return [
        (_format_fact_label(name), _format_fact(name, value))
        for name, value in facts
        if name not in left_out
    ]


def _format_fact(name: str, value: str) -> str:
    words = STATUS_WORDS if name in STATUS_FACTS else CODE_WORDS
    return words.get(value, value)


def _format_fact_label(name: str) -> str:
    return FACT_LABELS.get(name, name.replace("_", " ").capitalize())


def _list_steps(alarm: Alarm) -> list[AlarmStep]:
    steps = [AlarmStep("Raised", alarm.opened_at)]
    if alarm.times > 1:
        detail = f"{alarm.times} times in total"
        steps.append(AlarmStep("Repeated", alarm.last_seen_at, detail))
    if alarm.acknowledged_at:
        by = alarm.acknowledged_by
        steps.append(AlarmStep("Acknowledged", alarm.acknowledged_at, by=by))
    if alarm.closed_at:
        itself = alarm.closed_how == ClosedHow.ITSELF
        why = SELF_CLOSED_WORDS.get(alarm.kind, "the problem is gone")
        detail = f"automatically: {why}" if itself else ""
        by = None if itself else alarm.closed_by
        steps.append(AlarmStep("Resolved", alarm.closed_at, detail, alarm.note, by))
    return sorted(steps, key=lambda step: step.at)

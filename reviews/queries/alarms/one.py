"""One alarm: its facts, what was reported, what became of it, what can be done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from journal.errors import DomainError, NotFound
from policies.models import Person
from reviews import alarms
from reviews.choices import AlarmKind, AlarmStatus, ClosedHow
from reviews.models import Alarm, Execution
from reviews.queries import late_reports, upkeep
from reviews.queries.late_reports import Reported
from reviews.queries.upkeep import UpkeepTab
from reviews.queries.words import lines_of

from . import lists
from .lists import Line
from .visible import visible

# What a fact is called; what is not here is called by its own name.
LABELS = {
    "code": "Why",
    "execution": "Execution",
    "reported_hash": "Reported content",
    "granted_hash": "Granted content",
    "fence": "Attempt reported",
    "count": "Effects counted",
}

ENDED: dict[str, str] = {
    AlarmKind.NEVER_EXECUTED: "it ran after all",
    AlarmKind.DELIVERY_DEAD: "it was delivered",
    AlarmKind.RESTORED: "two people let it run again",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One moment in the life of an alarm. `note` is what a person wrote."""

    at: datetime
    said: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class AlarmPage:
    line: Line
    facts: list[tuple[str, str]]
    reports: list[Reported]
    steps: list[Step]
    may_acknowledge: bool
    may_close: bool
    why_not: str
    unknown_url: str
    tabs: list[UpkeepTab]


def one(person: Person, pk: int) -> AlarmPage:
    """Raises NotFound for what is not there or not theirs to see."""
    row = lists.shown(visible(person)).select_related("closed_by").filter(pk=pk).first()
    if row is None:
        raise NotFound
    why_not = _why_not(person, row)
    standing = row.status != AlarmStatus.CLOSED
    execution = Execution.objects.select_related("grant").filter(pk=row.subject).first()
    unknown = execution is not None and execution.status == "unknown"
    return AlarmPage(
        line=lists.lines_of([row])[0],
        facts=_facts(row),
        reports=late_reports.of(execution) if execution else [],
        steps=_steps(row),
        may_acknowledge=row.status == AlarmStatus.OPEN and not why_not,
        may_close=standing and not why_not,
        why_not=why_not if standing else "",
        unknown_url="" if not unknown else upkeep.url(upkeep.UNKNOWN),
        tabs=upkeep.tabs(person, upkeep.ALARMS),
    )


def _why_not(person: Person, alarm: Alarm) -> str:
    """Empty when the person may answer it, else the sentence that says why not."""
    try:
        alarms.check_may_answer(person, alarm)
    except DomainError as error:
        return error.detail
    return ""


def _facts(alarm: Alarm) -> list[tuple[str, str]]:
    found = list(lines_of(alarm.data))
    return [(LABELS.get(n, n.replace("_", " ").capitalize()), v) for n, v in found]


def _steps(alarm: Alarm) -> list[Step]:
    steps = [Step(alarm.opened_at, "Raised")]
    if alarm.times > 1:
        steps.append(
            Step(alarm.last_seen_at, f"Seen again; {alarm.times} times in all")
        )
    if alarm.acknowledged_at:
        steps.append(
            Step(alarm.acknowledged_at, f"{alarm.acknowledged_by} looks at it")
        )
    if alarm.closed_at:
        itself = alarm.closed_how == ClosedHow.ITSELF
        why = ENDED.get(alarm.kind, "it holds no more")
        said = f"Closed itself: {why}" if itself else f"{alarm.closed_by} closed it"
        steps.append(Step(alarm.closed_at, said, alarm.note))
    return sorted(steps, key=lambda step: step.at)

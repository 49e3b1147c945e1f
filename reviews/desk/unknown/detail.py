"""The page of one unknown outcome: everything known about it, the people who may settle
it, and what follows from each answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from journal.clock import time_of_day
from journal.errors import DomainError, NotFound
from journal.models import LogRecord
from policies.choices import ExecutionClass
from policies.models import Person
from reviews import permissions
from reviews.alarms import late_reports
from reviews.desk.components import navigation, retry, visibility
from reviews.desk.components.navigation import UpkeepTab
from reviews.desk.components.retry import Reported
from reviews.executions import rechecks, settle
from reviews.grants import approved_tool, sequence
from reviews.models import Execution
from reviews.permissions import Permission

from .lists import SAID, Unknown, readable
from .lists import line as lists_line

CLASSES = {
    ExecutionClass.KEYED: "Keyed: its service does the same key once only",
    ExecutionClass.QUERYABLE: "Queryable: its service can be asked by our reference",
    ExecutionClass.OPAQUE: "Opaque: tried once, and its service cannot be asked",
}
BEGUN = ("execution.claimed", "execution.reclaimed")
ENDED = {
    "execution.requeued": "known to have changed nothing",
    "execution.unknown": "nobody knows how it ended",
    "execution.failed": "failed without effect",
    "execution.succeeded": "done",
    "execution.refused": "refused by a check",
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One claim of the execution, and how it ended."""

    at: datetime
    by: str
    fence: int
    lease_until: datetime | None
    ended: str = "its holder was lost"
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """One look-up: who asked, and the answer. `note` is the service's own text."""

    at: datetime
    who: str
    said: str
    note: str


@dataclass(frozen=True, slots=True)
class Answer:
    """One of the two answers, and what follows from it."""

    value: str
    label: str
    follows: Sequence[str]


@dataclass(frozen=True, slots=True)
class UnknownItem:
    """One unknown outcome in full."""

    line: Unknown
    execution_class: str
    key: str
    reference: str
    last_step: str
    last_step_at: datetime | None
    attempts: list[Attempt]
    look_ups: list[Asked]
    late: list[Reported]
    can_be_asked: bool
    settlers: list[str]
    why_not: str
    answers: list[Answer]
    upkeep: list[UpkeepTab]

    @property
    def open(self) -> bool:
        """Whether the outcome is still unknown."""
        return not self.line.outcome


def item(person: Person, pk: str, now: datetime) -> UnknownItem:
    """Load the page. Raises NotFound for an execution that was never unknown, or that
    this person may not see."""
    execution = readable(person).filter(pk=pk).first()
    if execution is None:
        raise NotFound
    look_ups = list(execution.look_ups.order_by("number"))
    newest = {pk: look_ups[-1]} if look_ups else {}
    why_not = _why_not(person, execution)
    step, at = _last_step(execution)
    return UnknownItem(
        line=lists_line(execution, newest, not why_not),
        execution_class=CLASSES[approved_tool.class_of(execution)],
        key=execution.idempotency_key,
        reference=execution.pk,
        last_step=step,
        last_step_at=at,
        attempts=list(_attempts(execution)),
        look_ups=[
            Asked(one.at, _who(one.by_kind, one.by_id), SAID[one.said], _note(one))
            for one in look_ups
        ],
        late=retry.of(execution),
        can_be_asked=approved_tool.can_be_asked(execution),
        settlers=_settlers(person, execution),
        why_not=why_not,
        answers=_answers(execution, now),
        upkeep=navigation.tabs(person, navigation.UNKNOWN),
    )


def _why_not(person: Person, execution: Execution) -> str:
    """The operation's own refusal, without its last sentence, because nobody has tried
    anything yet; empty when this person may settle it."""
    try:
        permissions.check_can_settle(person, execution)
    except DomainError as error:
        said = error.detail.removesuffix(" Nothing was recorded.")
        return said.removesuffix(" Nothing was changed.")
    return ""


def _settlers(person: Person, execution: Execution) -> list[str]:
    """List the supervisors of the queue except those concerned by the run. Only people
    who see everything or are admitted to the queue get the names."""
    queue = execution.grant.revision.known_tool.queue_id
    may_know = permissions.allowed(person, Permission.SEE_ALL)
    if not (may_know or queue in permissions.queues_of(person)):
        return []
    return sorted(str(one) for one in visibility.of(execution))


def _last_step(execution: Execution) -> tuple[str, datetime | None]:
    """Describe the last known step of the execution's last holder.

    A worker records `began_at` before it asks for the effect, so without it our worker
    did not ask.
    """
    if execution.claimed_at is None:
        return "Nobody is known to have taken it: see why nobody knows", None
    if execution.by_agent:
        return "The agent took it to perform it itself", execution.claimed_at
    if execution.began_at is not None:
        return "The worker asked the service for the effect", execution.began_at
    return "The worker took it; it is not known to have asked", execution.claimed_at


def _attempts(execution: Execution) -> Iterator[Attempt]:
    """List the attempts from the log, oldest first: each claim, and the record that
    ended it."""
    kinds = [*BEGUN, *ENDED]
    rows = LogRecord.objects.filter(proposal=execution.proposal_id, kind__in=kinds)
    current: Attempt | None = None
    for row in rows.order_by("id"):
        data = row.data
        if row.kind in BEGUN and "code" in data:  # an unknown outcome, not an attempt
            continue
        if row.kind in BEGUN:
            if current is not None:
                yield current
            current = _begun(row, data)
        elif current is not None:
            yield _over(current, row)
            current = None
    if current is not None:
        yield current


def _begun(row: LogRecord, data: dict[str, Any]) -> Attempt:
    until = parse_datetime(str(data.get("lease_until", "")))
    by = "the agent" if row.actor_kind == "agent" else "a worker"
    return Attempt(row.at, by, int(data.get("fence", 0)), until)


def _over(attempt: Attempt, row: LogRecord) -> Attempt:
    ended = ENDED[row.kind]
    return Attempt(
        attempt.at, attempt.by, attempt.fence, attempt.lease_until, ended, row.at
    )


def _who(kind: str, id_: str) -> str:
    if kind != "person":
        return "Holdpoint"
    found = Person.objects.filter(public_id=id_).first()
    return str(found) if found else "Someone"


def _note(row: Any) -> str:
    return ": ".join(part for part in (row.code, row.detail) if part)


def _again(execution: Execution, now: datetime) -> str:
    """Describe whether the action may be tried again if it did not happen, by the rules
    of `settle.retry_execution`."""
    until = execution.grant.expires_at
    if until <= settle.due_again(execution, now):
        return "Its time to run is over: to be done after all it is proposed anew."
    if rechecks.stopped(execution) is not None:
        return "It was stopped: to be done after all it is proposed anew."
    if late_reports.says_it_happened(execution):
        return "It is not tried again while an alarm says that it happened."
    if sequence.is_halted(execution):
        return f"It can be tried again from its batch until {time_of_day(until)}."
    said = time_of_day(until)
    return f"A reviewer can have it tried again until {said}, with the same key."


def _answers(execution: Execution, now: datetime) -> list[Answer]:
    return [
        Answer(
            "yes",
            "It happened",
            [
                "The agent is told that it was executed. Its result stays unknown.",
                "Sums and limits go on counting it. Nothing runs.",
            ],
        ),
        Answer(
            "no",
            "It did not happen",
            [
                "The agent is told that it failed and changed nothing.",
                "Sums and limits count it no more.",
                _again(execution, now),
            ],
        ),
    ]

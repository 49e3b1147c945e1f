"""The page of one unknown outcome: everything known about it, the people who may settle
it, and what follows from each answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from journal import canonical
from journal.clock import format_time
from journal.errors import DomainError, NotFound
from journal.models import LogRecord
from policies.choices import ExecutionClass
from policies.models import Person
from reviews import permissions
from reviews.alarms import late_reports
from reviews.choices import SETTLED_BY_PERSON
from reviews.effects.wording import WordingPart
from reviews.executions import rechecks, settle
from reviews.grants import sequence
from reviews.models import Execution, LookUp
from reviews.roles import Permission
from reviews.tool_services import executors

from ..components import log_lines, retry, visibility
from ..components.retry import LateReportLine
from .lists import (
    LOOK_UP_WORDS,
    UnknownOutcomeLine,
    build_unknown_line,
    select_readable,
)

CLASS_SENTENCES = {
    ExecutionClass.KEYED: "Keyed: the service performs each idempotency key once",
    ExecutionClass.QUERYABLE: "Queryable: the service can be queried by reference",
    ExecutionClass.OPAQUE: "Opaque: attempted once; the service offers no look-up",
}
NO_ATTEMPT = "No attempt is recorded; see the details"
CLAIM_KINDS = ("execution.claimed", "execution.reclaimed")
END_WORDS = {
    "execution.requeued": "no effect, queued again",
    "execution.unknown": "result unknown",
    "execution.failed": "failed without effect",
    "execution.succeeded": "completed",
    "execution.refused": "refused by a check",
}


@dataclass(frozen=True, slots=True)
class ExecutionAttempt:
    """One claim of the execution, and how it ended."""

    at: datetime
    by: str
    fence: int
    lease_until: datetime | None
    ended_as: str = ""  # the kind of the record that ended it
    ended_at: datetime | None = None

    @property
    def ended(self) -> str:
        """How it ended, in words."""
        return END_WORDS.get(self.ended_as, "no end recorded")


@dataclass(frozen=True, slots=True)
class LookUpLine:
    """One look-up: who asked, and the answer. `note` is the service's own text."""

    at: datetime
    who: Person | str
    answer: str
    note: str


@dataclass(frozen=True, slots=True)
class SettlementAnswer:
    """One of the two answers, and what follows from it."""

    value: str
    label: str
    follows: Sequence[str]


@dataclass(frozen=True, slots=True)
class UnknownOutcomePage:
    """One unknown outcome in full."""

    line: UnknownOutcomeLine
    execution_class: str
    last_step: str
    last_step_at: datetime | None
    attempts: list[ExecutionAttempt]
    look_ups: list[LookUpLine]
    late: list[LateReportLine]
    settlers: list[Person]
    why_not: str
    answers: list[SettlementAnswer]
    shown: str  # what the form sends back

    @property
    def open(self) -> bool:
        """Whether the outcome is still unknown."""
        return not self.line.outcome


def load_unknown_outcome(person: Person, pk: str, now: datetime) -> UnknownOutcomePage:
    """Load the page. Raises NotFound for an execution that was never unknown, or that
    this person may not see."""
    execution = select_readable(person).filter(pk=pk).first()
    if execution is None:
        raise NotFound
    look_ups = list(execution.look_ups.order_by("number"))
    people = log_lines.load_people(look_up.by_id for look_up in look_ups)
    newest = {pk: look_ups[-1]} if look_ups else {}
    why_not = _describe_refusal(person, execution)
    step, at = _describe_last_step(execution)
    return UnknownOutcomePage(
        line=build_unknown_line(
            execution, newest, not why_not, settler=_find_settler(person, execution)
        ),
        execution_class=CLASS_SENTENCES[execution.execution_class],
        last_step=step,
        last_step_at=at,
        attempts=list(_list_attempts(execution)),
        look_ups=[_build_look_up_line(look_up, people) for look_up in look_ups],
        late=retry.list_late_reports(execution),
        settlers=_list_settlers(person, execution),
        why_not=why_not,
        answers=_build_answers(execution, now),
        shown=canonical.format_shown(settle.build_shown_outcome(execution)),
    )


def _describe_refusal(person: Person, execution: Execution) -> str:
    """The operation's own refusal, without its last sentence, because nobody has tried
    anything yet; empty when this person may settle it."""
    try:
        permissions.check_can_settle_unknown(person, execution)
    except DomainError as error:
        return error.cause
    return ""


def _list_settlers(person: Person, execution: Execution) -> list[Person]:
    """List the other supervisors of the queue, except those concerned by the run. Only
    people who see everything or are admitted to the queue get the names."""
    queue = execution.grant.revision.known_tool.queue_id
    may_know = permissions.has_permission(person, Permission.SEE_ALL)
    if not (may_know or queue in permissions.queues_of(person)):
        return []
    others = (
        settler for settler in visibility.list_settlers(execution) if settler != person
    )
    return sorted(others, key=str)


def _describe_last_step(execution: Execution) -> tuple[str, datetime | None]:
    """Describe the last known step of the execution's last holder.

    A worker records `began_at` before it asks for the effect, so without it our worker
    did not ask.
    """
    if execution.claimed_at is None:
        return NO_ATTEMPT, None
    if execution.by_agent:
        return "The agent started to perform it", execution.claimed_at
    if execution.began_at is not None:
        return "The worker called the service", execution.began_at
    return (
        "The worker started; no call to the service is recorded",
        execution.claimed_at,
    )


def _list_attempts(execution: Execution) -> Iterator[ExecutionAttempt]:
    kinds = [*CLAIM_KINDS, *END_WORDS]
    rows = LogRecord.objects.filter(proposal=execution.proposal_id, kind__in=kinds)
    current: ExecutionAttempt | None = None
    for row in rows.order_by("id"):
        data = row.data
        if (
            row.kind in CLAIM_KINDS and "code" in data
        ):  # an unknown outcome, not an attempt
            continue
        if row.kind in CLAIM_KINDS:
            if current is not None:
                yield current
            current = _begin_attempt(row, data)
        elif current is not None:
            yield _end_attempt(current, row)
            current = None
    if current is not None:
        yield current


def _begin_attempt(row: LogRecord, data: dict[str, Any]) -> ExecutionAttempt:
    until = parse_datetime(str(data.get("lease_until", "")))
    by = "the agent" if row.actor_kind == "agent" else "a worker"
    return ExecutionAttempt(row.at, by, int(data.get("fence", 0)), until)


def _end_attempt(attempt: ExecutionAttempt, row: LogRecord) -> ExecutionAttempt:
    return replace(attempt, ended_as=row.kind, ended_at=row.at)


def _name_asker(row: LookUp, people: Mapping[str, Person]) -> Person | str:
    if row.by_kind != "person":
        return "Counterseal"
    return people.get(row.by_id, "Someone")


def _build_look_up_line(row: LookUp, people: Mapping[str, Person]) -> LookUpLine:
    """The answer is said once where Counterseal itself says why it is not clear."""
    who, note = _name_asker(row, people), row.detail or row.code
    if note == executors.NEITHER:
        return LookUpLine(row.at, who, note, "")
    return LookUpLine(row.at, who, LOOK_UP_WORDS[row.said], note)


def _find_settler(reader: Person, execution: Execution) -> WordingPart | None:
    if execution.code != SETTLED_BY_PERSON:
        return None
    rows = LogRecord.objects.filter(
        proposal=execution.proposal_id, kind="execution.settled", actor_kind="person"
    )
    ids = rows.order_by("-id").values_list("actor_id", flat=True)[:1]
    return next(iter(log_lines.load_names(reader, ids).values()), None)


def _describe_retry(execution: Execution, now: datetime) -> str:
    """Describe whether the action may be tried again if it did not happen, by the rules
    of `settle.retry_execution`."""
    until = execution.grant.expires_at
    if until <= settle.compute_retry_time(execution, now):
        return "Its execution window has ended, so it must be proposed again."
    if rechecks.find_lasting_stop_refusal(execution) is not None:
        return "It was stopped, so it must be proposed again."
    if late_reports.has_unanswered_report(execution):
        return "It cannot be retried while an alarm reports that it happened."
    if sequence.is_batch_halted(execution):
        return f"It can be retried from its batch until {format_time(until)}."
    deadline = format_time(until)
    return f"A reviewer can retry it until {deadline} with the same idempotency key."


def _build_answers(execution: Execution, now: datetime) -> list[SettlementAnswer]:
    return [
        SettlementAnswer(
            "yes",
            "It happened",
            [
                "The agent is told that it was executed, without the tool's answer.",
                "Counters and limits continue to count it. Nothing runs.",
            ],
        ),
        SettlementAnswer(
            "no",
            "It did not happen",
            [
                "The agent is told that it failed and changed nothing.",
                "Counters and limits no longer count it.",
                _describe_retry(execution, now),
            ],
        ),
    ]

"""What takes two administrators: datasets, and changes of the library of defects, of
what a person may do and of what loosens an agent's settings. One of them asks, another
answers within a week, and the one who asked may withdraw it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar, cast

from django.db import models
from django.db.models import QuerySet

from journal import clock, log, sweeps
from journal.errors import Conflict, NotPermitted, TextMissing, build_field_error
from journal.state_machine import Machine
from policies.models import Person
from policies.people import build_actor
from reviews import locks

ANSWERED_WITHIN = timedelta(days=7)
LONGEST_TEXT = 2000  # characters of a purpose or a reason
OVER = "It was already answered or withdrawn, or it has expired. Nothing was changed."
TIMER = log.Actor("system", "timer")
MOST_LAPSED = 100  # in one transaction
# A row with the columns of a change that two people make: `status`, `asked_by`,
# `asked_at`, `settled_by`, `settled_at` and `refusal`.
A = TypeVar("A", bound=models.Model)


class AnswerableRow(Protocol):
    """A row that waits for its second person."""

    @property
    def status(self) -> str: ...

    @property
    def asked_at(self) -> datetime: ...

    @property
    def asked_by_id(self) -> int: ...


def check_may_answer(row: AnswerableRow, why_not: str, open_status: str) -> None:
    """Raises NotPermitted for a reason why this person may not answer, and Conflict for
    a row that does not wait. Caller holds the row's lock."""
    if why_not:
        raise NotPermitted(why_not)
    _check_open(row, open_status)


def _check_open(row: AnswerableRow, open_status: str) -> None:
    late = row.asked_at <= clock.now() - ANSWERED_WITHIN  # the sweep comes next
    if row.status != open_status or late:
        raise Conflict(OVER)


def read_reason(reason: str) -> str:
    """The reason without surrounding space. Raises TextMissing."""
    text = reason.strip()
    if not text or len(text) > LONGEST_TEXT:
        rule = f"Say why, in at most {LONGEST_TEXT:,} characters."
        raise TextMissing(
            "Nothing was recorded.", errors=[build_field_error("reason", rule)]
        )
    return text


def settle_row(
    machine: Machine,
    row: A,
    event: str,
    *,
    person: Person,
    refusal: str,
    log_data: Mapping[str, Any],
) -> A:
    """Record the answer of the second person, with the reason of a refusal. A step of
    an operation, which holds the row's lock and has checked who answers."""
    now = clock.now()
    return machine.apply(
        row,
        event,
        actor=build_actor(person),
        now=now,
        changes={"settled_by": person, "settled_at": now, "refusal": refusal},
        private={"reason": refusal} if refusal else None,
        **log_data,
    )


def withdraw_row(
    machine: Machine,
    row: A,
    *,
    person: Person,
    open_status: str,
    log_data: Mapping[str, Any],
) -> A:
    """End a row that waits, for the person who asked. A step of an operation, which
    holds the row's lock. Raises NotPermitted for anybody else, and Conflict for a row
    that does not wait."""
    waiting = cast("AnswerableRow", row)
    if person.pk != waiting.asked_by_id:
        raise NotPermitted("Only the administrator who asked for it can withdraw it.")
    _check_open(waiting, open_status)
    now = clock.now()
    return machine.apply(
        row,
        "withdraw",
        actor=build_actor(person),
        now=now,
        changes={"settled_at": now},
        **log_data,
    )


def lapse_unanswered(
    machine: Machine, waiting: QuerySet[A], log_data: Callable[[A], Mapping[str, Any]]
) -> int:
    """End the rows among these that nobody answered within a week, at most a hundred.
    Returns how many. `log_data` returns the log members of one. A step of an operation.
    Locks: the rows (skip locked)."""
    now = clock.now()
    due = waiting.filter(asked_at__lte=now - ANSWERED_WITHIN)
    rows = list(locks.lock_due_rows(due.order_by("pk"))[:MOST_LAPSED])

    def lapse(unanswered: list[A]) -> None:
        machine.apply_many(
            unanswered,
            "lapse",
            actor=TIMER,
            now=now,
            changes={"settled_at": now},
            each=log_data,
        )

    return len(sweeps.apply_to_all(lapse, rows))

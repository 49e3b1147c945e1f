"""A question's way from its agent to an answer: opened, answered or declined by a
person, withdrawn, or expired.

An answer is data for the agent. No rule reads it, and no effect follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Q

from journal import clock, log, notify, restore_epochs, sweeps
from journal.clock import format_time
from journal.errors import (
    AlreadyDecided,
    Conflict,
    InvalidInput,
    RequestExpired,
    RequestWithdrawn,
    build_field_error,
)
from journal.operations import operation
from policies.models import Person
from policies.people import build_actor
from reviews import locks, permissions, transitions
from reviews.choices import QuestionStatus, Scope, StopMode
from reviews.models import Question, Stop
from reviews.stops import gate_state

from . import addressees, forms

NOTE_LENGTH = 2000  # characters
CHUNK = 500
TIMER = log.Actor("system", "timer")


def open_question(question: Question, *, now: datetime) -> None:
    """Store a question of an agent and let people know. A step of the agents'
    operation, which checks the schema and redacts the texts."""
    transitions.question.create(
        question,
        "ask",
        actor=log.Actor("agent", question.agent),
        now=now,
        data={"question": question.pk, "to": _describe_addressee(question)},
        private={"text": question.text},
    )


def _describe_addressee(question: Question) -> str:
    if question.person is not None:
        return question.person.public_id
    return question.addressee.name  # type: ignore[union-attr]


@operation(
    locks="question",
    writes="Question",
    logs="question.answered",
    after="wake-up",
)
def answer_question(
    *, question_id: str, person: Person, answer: Mapping[str, Any]
) -> Question:
    """Answer a question. Raises NotFound, NotPermitted, InvalidInput for an answer that
    does not fit the form, AlreadyDecided, RequestExpired, RequestWithdrawn."""
    question, now = _lock_for_person(question_id, person)
    forms.check_answer(question.schema, answer)  # guard: answer-form
    changes = {"answer": dict(answer)}
    _settle(question, "answer", person, now, changes, {"answer": dict(answer)})
    return question


@operation(
    locks="question",
    writes="Question",
    logs="question.declined",
    after="wake-up",
)
def decline_question(*, question_id: str, person: Person, note: str = "") -> Question:
    """Decline to answer, with a note for the agent that may be empty. Raises what
    `answer_question` raises."""
    note = note.replace("\r\n", "\n").strip()
    if len(note) > NOTE_LENGTH:
        rule = f"at most {NOTE_LENGTH} characters: {len(note)} were given; shorten it"
        raise InvalidInput(errors=[build_field_error("note", rule)])
    question, now = _lock_for_person(question_id, person)
    _settle(question, "decline", person, now, {"note": note}, {"note": note})
    return question


def _lock_for_person(question_id: str, person: Person) -> tuple[Question, datetime]:
    question = locks.lock_question(question_id)
    state = gate_state.load_state((question.agent, question.thread, ""))
    restore_epochs.check_not_restored(state.halted)
    # Their role may have been revoked during the wait for the lock.
    person = permissions.load_deciders([person.pk])[person.pk].person
    addressees.check_can_answer(person, question)  # guard: question-addressee
    _check_open(question, state.now)
    if state.mode is StopMode.STOPPED:  # guard: question-stop
        raise RequestWithdrawn("This run was stopped. Your answer was not recorded.")
    return question, state.now


def _check_open(question: Question, now: datetime) -> None:
    """Raises RequestExpired, RequestWithdrawn or AlreadyDecided unless the question
    still waits."""
    status = QuestionStatus(question.status)
    overdue = status is QuestionStatus.OPEN and question.expires_at <= now
    if overdue or status is QuestionStatus.EXPIRED:
        raise RequestExpired(
            f"This expired at {format_time(question.expires_at)}. Your answer was not "
            "recorded. The agent can ask again."
        )
    if status is QuestionStatus.WITHDRAWN:
        raise RequestWithdrawn(
            "This was withdrawn, so nobody waits for an answer. Yours was not recorded."
        )
    if status is not QuestionStatus.OPEN:
        word = "answered" if status is QuestionStatus.ANSWERED else "declined"
        raise AlreadyDecided(f"Somebody {word} this before. Yours was not recorded.")


def _settle(
    question: Question,
    event: str,
    person: Person,
    now: datetime,
    changes: Mapping[str, Any],
    private: Mapping[str, Any],
) -> None:
    """End a question by a person. The log has only an HMAC of what they typed."""
    transitions.question.apply(
        question,
        event,
        actor=build_actor(person),
        now=now,
        changes={**changes, "settled_by": person, "settled_at": now},
        data={"question": question.pk},
        private=private,
    )
    notify.announce(question.pk)


def withdraw_question(
    question: Question, *, actor: log.Actor, now: datetime, code: str
) -> None:
    """Withdraw an open question. `code` says why, for the log. A step; the caller holds
    the question's lock. Raises Conflict for one that has ended."""
    if question.status != QuestionStatus.OPEN:
        raise Conflict(
            f"This question is {question.status} already, so it cannot be withdrawn."
            " Read it."
        )
    transitions.question.apply(
        question,
        "withdraw",
        actor=actor,
        now=now,
        changes={"settled_at": now},
        data={"question": question.pk, "code": code},
    )
    notify.announce(question.pk)


def withdraw_of_run(
    agent: str, thread: str, *, actor: log.Actor, now: datetime
) -> None:
    """Withdraw what a run that ends still asks. A step."""
    waiting = Question.objects.filter(
        agent=agent, thread=thread, status=QuestionStatus.OPEN
    ).order_by("pk")
    for question in locks.lock_rows(waiting):
        withdraw_question(question, actor=actor, now=now, code="thread_finished")


@operation(
    locks="questions (skip locked)",
    writes="Question",
    logs="question.withdrawn",
    after="wake-up",
)
def withdraw_stopped(stop: Stop) -> list[str]:
    """Withdraw up to 500 open questions of a stopped run or agent, or all agents';
    return their ids."""
    waiting = Question.objects.filter(_build_stop_condition(stop))
    now = clock.now()
    rows = list(locks.lock_due_rows(waiting.order_by("pk"))[:CHUNK])
    return _end_rows(rows, "withdraw", now, code="stopped")


def _build_stop_condition(stop: Stop) -> Q:
    open_ = Q(status=QuestionStatus.OPEN)
    if stop.mode != StopMode.STOPPED or stop.lifted_at is not None:
        return Q(pk__in=[])
    if stop.scope == Scope.EVERYTHING:
        return open_
    if stop.scope == Scope.AGENT:
        return open_ & Q(agent=stop.key)
    if stop.scope == Scope.THREAD:
        agent, _, thread = stop.key.partition("/")
        return open_ & Q(agent=agent, thread=thread)
    return Q(pk__in=[])


@operation(
    locks="questions (skip locked)",
    writes="Question",
    logs="question.expired",
    after="wake-up",
)
def expire_chunk() -> list[str]:
    """Expire up to 500 overdue questions; return their ids. Raises DatabaseRestored
    while nobody has confirmed a restored database."""
    restore_epochs.check_not_restored()
    overdue = Question.objects.filter(
        status=QuestionStatus.OPEN, expires_at__lte=clock.ClockTimestamp()
    )
    rows = list(locks.lock_due_rows(overdue.order_by("pk"))[:CHUNK])
    return _end_rows(rows, "expire", clock.now())


def _end_rows(
    rows: list[Question], event: str, now: datetime, **data: str
) -> list[str]:
    def end(due: list[Question]) -> None:
        transitions.question.apply_many(
            due,
            event,
            actor=TIMER,
            now=now,
            changes={"settled_at": now},
            each=lambda row: {"data": {"question": row.pk, **data}},
        )

    ended = [row.pk for row in sweeps.apply_to_all(end, rows)]
    notify.announce(*ended)
    return ended

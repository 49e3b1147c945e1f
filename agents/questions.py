"""Questions of agents to people: asked, read and withdrawn by their agent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from journal import log, restore_epochs
from journal.errors import (
    AgentRateLimited,
    InvalidInput,
    NotFound,
    build_field_error,
)
from journal.operations import operation
from policies.models import Person, Queue
from reviews import locks as reviews_locks
from reviews.choices import QuestionStatus
from reviews.models import Question
from reviews.models.base import new_question_id
from reviews.questions import addressees, forms, questions
from reviews.redaction.redactor import load_redactor
from reviews.stops import gate_state, stops

from . import idempotency, proposals, representation
from .idempotency import CallKey, StoredAnswer
from .intake import check_identifiers
from .models import Agent
from .schemas.questions import QuestionIn

PERSON_MARK = "@"
_RECENT = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class QuestionInput:
    """A checked question: to one queue or one person, with redacted texts."""

    thread: str
    queue: Queue | None
    person: Person | None
    text: str
    schema: dict[str, Any]
    expires_in: int  # seconds


def build_question_input(agent: Agent, body: QuestionIn) -> QuestionInput:
    """Check a question and redact its texts. Raises InvalidInput."""
    check_identifiers({"thread": body.thread})
    redactor = load_redactor(agent.slug, body.thread)
    queue, person = _find_addressee(body.to)
    return QuestionInput(
        thread=body.thread,
        queue=queue,
        person=person,
        text=redactor.text(body.text),
        schema=forms.build_form_schema(body.schema_, redactor.text),
        expires_in=body.expires_in,
    )


def _find_addressee(to: str) -> tuple[Queue | None, Person | None]:
    if to.startswith(PERSON_MARK):
        login = to.removeprefix(PERSON_MARK)
        person = Person.objects.filter(username=login, is_active=True).first()
        if person is not None:
            return None, person
        rule = "no active person has this login; ask a queue, or correct the login"
    else:
        queue = Queue.objects.filter(name=to).first()
        if queue is not None:
            return queue, None
        rule = "no queue has this name; name one, or write @ and a person's login"
    raise InvalidInput(errors=[build_field_error("to", rule)])


@operation(
    locks="idempotency key, thread",
    writes="IdempotencyKey, Thread, Question",
    logs="thread.started; question.asked",
    after="mail, wake-up",
)
def ask_question(*, agent: Agent, key: CallKey, asked: QuestionInput) -> StoredAnswer:
    """Put a question to people. Raises AgentStopped, AgentRateLimited, Conflict for a
    finished thread, IdempotencyKeyReused, InProgress."""
    earlier_answer = idempotency.claim_key(agent, key)
    if earlier_answer is not None:
        return earlier_answer
    thread = proposals.lock_or_start_thread(agent, asked.thread)
    state = gate_state.load_state((agent.slug, asked.thread, ""))
    restore_epochs.check_not_restored(state.halted)
    _check_caps(agent, state.now)
    proposals.check_running(thread)
    stops.check_run_may_propose(state.mode, agent.slug, asked.thread)
    question = Question(
        id=new_question_id(),
        agent=agent.slug,
        thread=asked.thread,
        owner=agent.owner.public_id,
        queue=asked.queue,
        person=asked.person,
        text=asked.text,
        schema=asked.schema,
        asked_at=state.now,
        expires_at=state.now + timedelta(seconds=asked.expires_in),
    )
    questions.open_question(question, now=state.now)
    body = build_question_json(question)
    return idempotency.store_answer(agent, key, status=201, body=body, proposal="")


def _check_caps(agent: Agent, now: datetime) -> None:
    """Raise AgentRateLimited at the limits that also hold for an agent's proposals."""
    limits = settings.COUNTERSEAL
    own = Question.objects.filter(agent=agent.slug)
    if own.filter(asked_at__gt=now - _RECENT).count() >= limits.agent_rate_per_minute:
        raise AgentRateLimited(
            "This agent has too many questions in one minute. Nothing was asked.",
            retry_after=10,
        )
    waiting = own.filter(status=QuestionStatus.OPEN).count()
    if waiting >= limits.agent_pending_cap:
        raise AgentRateLimited(
            "This agent has too many open questions. Nothing was asked.",
            retry_after=60,
        )


@operation(
    locks="question",
    writes="Question",
    logs="question.withdrawn",
    after="wake-up",
)
def withdraw_question(*, agent: Agent, question_id: str) -> Question:
    """Take a question back. Raises NotFound, and Conflict for one that has ended."""
    load_own_question(agent, question_id)
    question = reviews_locks.lock_question(question_id)
    state = gate_state.load_state((question.agent, question.thread, ""))
    restore_epochs.check_not_restored(state.halted)
    questions.withdraw_question(
        question,
        actor=log.Actor("agent", agent.slug),
        now=state.now,
        code="withdrawn_by_agent",
    )
    return question


def load_own_question(agent: Agent, question_id: str) -> Question:
    """Raises NotFound for a question of another agent."""
    question = _select_own(agent).filter(pk=question_id).first()
    if question is None:
        raise NotFound
    return question


def _select_own(agent: Agent) -> QuerySet[Question]:
    rows = Question.objects.select_related("queue", "person")
    return rows.filter(agent=agent.slug)  # guard: own-question


def build_question_json(question: Question) -> dict[str, Any]:
    """A question as `QuestionOut` describes it."""
    status = question.status
    return {
        "id": question.pk,
        "url": f"{settings.COUNTERSEAL.base_url}/questions/{question.pk}/",
        "thread": question.thread,
        "to": addressees.format_addressee(question),
        "status": str(status),
        "text": question.text,
        "schema": question.schema,
        "asked_at": representation.format_timestamp(question.asked_at),
        "expires_at": representation.format_timestamp(question.expires_at),
        "settled_at": representation.format_timestamp(question.settled_at),
        "answer": question.answer,
        "note": question.note,
    }

"""The list of questions, and the page of one."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from journal.errors import NotFound
from policies.models import Person
from reviews import permissions
from reviews.choices import QuestionStatus
from reviews.models import Question
from reviews.questions import addressees

from ..components.formatting import DeadlineClock, build_clock
from ..components.log_sentences import HIDDEN_NAME

MOST_WAITING = 200
MOST_ENDED = 30
SUMMARY_LENGTH = 160
STATUS_WORDS = {
    QuestionStatus.OPEN: "Open",
    QuestionStatus.ANSWERED: "Answered",
    QuestionStatus.DECLINED: "Declined",
    QuestionStatus.EXPIRED: "Expired",
    QuestionStatus.WITHDRAWN: "Withdrawn",
}
_ICONS = {
    QuestionStatus.OPEN: "ask",
    QuestionStatus.ANSWERED: "ok",
    QuestionStatus.DECLINED: "no",
    QuestionStatus.EXPIRED: "void",
    QuestionStatus.WITHDRAWN: "back",
}


@dataclass(frozen=True, slots=True)
class QuestionLine:
    """One question. `clock` is None once it has ended, or its deadline is over; `by`
    answered or declined it."""

    question: Question
    asks: str
    by: Person | str
    status: QuestionStatus
    clock: DeadlineClock | None

    @property
    def summary(self) -> str:
        """The question's text on one line, cut."""
        return textwrap.shorten(self.question.text, SUMMARY_LENGTH, placeholder="…")

    @property
    def word(self) -> str:
        return STATUS_WORDS[self.status]

    @property
    def icon(self) -> str:
        return _ICONS[self.status]


@dataclass(frozen=True, slots=True)
class QuestionsPage:
    """The questions that this person may answer, those that others may, and those that
    ended lately."""

    mine: Sequence[QuestionLine]
    others: Sequence[QuestionLine]
    ended: Sequence[QuestionLine]


@dataclass(frozen=True, slots=True)
class QuestionPage:
    """One question; `why_not` says why this person cannot answer it now."""

    line: QuestionLine
    why_not: str

    @property
    def question(self) -> Question:
        return self.line.question


def build_questions_page(person: Person, now: datetime) -> QuestionsPage:
    """Open questions by their deadline, then ended ones, newest first."""
    visible = addressees.select_visible(person)
    open_ = visible.filter(status=QuestionStatus.OPEN, expires_at__gt=now)
    mine = addressees.select_answerable(person).order_by("expires_at", "pk")
    answerable = list(mine[:MOST_WAITING])
    keys = [question.pk for question in answerable]
    others = open_.exclude(pk__in=keys).order_by("expires_at", "pk")
    ended = visible.exclude(pk__in=open_.values("pk")).order_by("-asked_at", "pk")
    return QuestionsPage(
        mine=[_build_line(person, row, now) for row in answerable],
        others=[_build_line(person, row, now) for row in others[:MOST_WAITING]],
        ended=[_build_line(person, row, now) for row in ended[:MOST_ENDED]],
    )


def build_question_page(person: Person, pk: str, now: datetime) -> QuestionPage:
    """Raises NotFound for a question that this person may not see."""
    question = addressees.select_visible(person).filter(pk=pk).first()
    if question is None:
        raise NotFound
    line = _build_line(person, question, now)
    if line.clock is None:
        return QuestionPage(line, line.word)
    return QuestionPage(line, addressees.describe_why_cannot_answer(person, question))


def _build_line(person: Person, question: Question, now: datetime) -> QuestionLine:
    status = QuestionStatus(question.status)
    if status is QuestionStatus.OPEN and question.expires_at <= now:
        status = QuestionStatus.EXPIRED  # until the sweep says so
    clock = build_clock(question.expires_at, since=question.asked_at, now=now)
    waits = status is QuestionStatus.OPEN
    asks = addressees.describe_addressee(question)
    by = _name_settler(person, question)
    return QuestionLine(question, asks, by, status, clock if waits else None)


def _name_settler(person: Person, question: Question) -> Person | str:
    """Who ended it. The owner of an agent does not learn who answered a queue's, as
    they never learn who decided."""
    if question.settled_by in {None, person}:
        return question.settled_by or ""
    owned = question.owner == person.public_id and question.queue is not None
    hides = owned and not permissions.never_decides(person)
    return HIDDEN_NAME if hides else question.settled_by

"""A question's way: who answers it, once, and how it ends without an answer."""

from __future__ import annotations

import pytest

from hitl import tasks
from journal import errors
from journal.models import LogRecord
from reviews.choices import Scope, StopMode
from reviews.models import Stop
from reviews.questions import addressees, questions
from reviews.stops import stops
from tests.conftest import Gate
from tests.reviews.questions.asking import ask, move_past_deadline

ANSWER = {"how": "card", "amount": 3}


def test_an_answer_is_given_once(gate: Gate) -> None:
    question = ask(gate.agent)
    questions.answer_question(question_id=question.pk, person=gate.rita, answer=ANSWER)
    with pytest.raises(errors.AlreadyDecided, match="answered this before"):
        questions.decline_question(question_id=question.pk, person=gate.tom)


@pytest.mark.parametrize(
    ("answer", "path"),
    [
        ({"how": "card"}, "answer.amount"),
        ({"how": "cash", "amount": 3}, "answer.how"),
        ({"how": "card", "amount": 101}, "answer.amount"),
        ({"how": "card", "amount": 3, "more": 1}, "answer.more"),
        ({"how": "card", "amount": 3, "from_day": "Monday"}, "answer.from_day"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(
    gate: Gate, answer: dict[str, object], path: str
) -> None:
    question = ask(gate.agent)
    with pytest.raises(errors.InvalidInput) as refused:
        questions.answer_question(
            question_id=question.pk, person=gate.rita, answer=answer
        )
    assert path in [error["path"] for error in refused.value.errors]


def test_only_the_addressee_answers(gate: Gate) -> None:
    to_queue, to_owner = ask(gate.agent), ask(gate.agent, "@owen")
    for name, person in gate.people.items():
        for question in (to_queue, to_owner):
            listed = addressees.select_answerable(person).filter(pk=question.pk)
            cause = addressees.describe_why_cannot_answer(person, question)
            assert listed.exists() == (not cause), (name, cause)
    with pytest.raises(errors.NotPermitted, match="asks somebody else"):
        questions.answer_question(
            question_id=to_owner.pk, person=gate.rita, answer=ANSWER
        )
    questions.answer_question(question_id=to_owner.pk, person=gate.owen, answer=ANSWER)


def test_the_sweep_expires_what_nobody_answered(gate: Gate) -> None:
    question, later = ask(gate.agent), ask(gate.agent)
    move_past_deadline(question)
    with pytest.raises(errors.RequestExpired):
        questions.answer_question(
            question_id=question.pk, person=gate.rita, answer=ANSWER
        )
    assert tasks.expire_due() == 1
    question.refresh_from_db()
    later.refresh_from_db()
    assert (question.status, later.status) == ("expired", "open")
    record = LogRecord.objects.get(kind="question.expired")
    assert (record.agent, record.actor_id) == (gate.agent.slug, "timer")


def test_a_stop_withdraws_and_a_lifted_one_does_not(gate: Gate) -> None:
    question = ask(gate.agent)
    stops.create_stop(
        scope=Scope.AGENT,
        key=gate.agent.slug,
        mode=StopMode.STOPPED,
        person=gate.sam,
        reason="Wrong.",
    )
    with pytest.raises(errors.RequestWithdrawn):
        questions.answer_question(
            question_id=question.pk, person=gate.rita, answer=ANSWER
        )
    assert questions.withdraw_stopped(Stop.objects.get()) == [question.pk]
    question.refresh_from_db()
    assert question.status == "withdrawn"

"""Questions of agents: the list, and one in each of its states."""

from __future__ import annotations

from typing import Any

from reviews.models import Question
from reviews.questions import questions
from tests.gallery.scene import SceneGroup, Submission
from tests.gallery.store import StoreGate
from tests.reviews.questions import asking

QUESTIONS = SceneGroup("questions", shows=("reviews:questions", "reviews:question"))
TEXT = """\
Order 1180 arrived with a broken lid. The customer asks for a refund of the lid only. \
The return window ends tomorrow. How do we refund it?

See https://help.example.com/returns for our rules."""
FORM: dict[str, Any] = {
    "type": "object",
    "title": "Refund of order 1180",
    "description": "What you choose is done within the hour.",
    "properties": {
        **asking.FORM["properties"],
        "carrier": {
            "type": "string",
            "title": "Carrier of the return",
            "enum": [f"Carrier {number}" for number in range(1, 9)],
        },
        "call_at": {"type": "string", "format": "date-time", "title": "Call them at"},
        "serials": {
            "type": "array",
            "title": "Serial numbers",
            "description": "From the labels of the broken parts.",
            "items": {"type": "string"},
            "maxItems": 5,
        },
    },
    "required": ["how", "amount"],
}
SENT = {
    "act": "answer",
    "answer.how": "card",
    "answer.amount": "about ten",
    "answer.from_day": "Monday",
    "answer.remark": "The lid alone costs 9.90.",
    "note": "",
}


def ask(gate: StoreGate, to: str = "refunds", **fields: Any) -> Question:
    return asking.ask(gate.agent, to, **{"text": TEXT, "schema": FORM, **fields})


def path(question: Question) -> str:
    return f"/questions/{question.pk}/"


QUESTIONS.add("none", "No question waits for you.", "/questions/")
QUESTIONS.add(
    "open", "Labels and options are the agent's. Not checked.", lambda g: path(ask(g))
)
QUESTIONS.add(
    "refused",
    "Enter a number, such as 12.50.",
    lambda gate: Submission(path(ask(gate)), SENT),
)
QUESTIONS.add(
    "decline-refused",
    "Say why you decline.",
    lambda gate: Submission(path(ask(gate)), {"act": "decline", "note": " "}),
)


@QUESTIONS.scene("answered", "To the card")
def answered(gate: StoreGate) -> str:
    question = ask(gate)
    questions.answer_question(
        question_id=question.pk,
        person=gate.tom,
        answer={"how": "card", "amount": 9.9, "labels": ["urgent"]},
    )
    return path(question)


@QUESTIONS.scene("declined", "The customer must send a picture first.")
def declined(gate: StoreGate) -> str:
    question = ask(gate)
    note = "The customer must send a picture first."
    questions.decline_question(question_id=question.pk, person=gate.sue, note=note)
    return path(question)


@QUESTIONS.scene("late", "Your answer was not recorded.")
def late(gate: StoreGate) -> Submission:
    question = ask(gate)
    asking.move_past_deadline(question)
    return Submission(path(question), SENT)


@QUESTIONS.scene("others", "This asks somebody else.", "otto")
def others(gate: StoreGate) -> str:
    return path(ask(gate, "@owen"))


@QUESTIONS.scene("list", "Waiting for others", "adam")
def seen_by_administrator(gate: StoreGate) -> str:
    ask(gate, "@adam")
    return "/questions/"


QUESTIONS.add("list-mine", "Ended", "/questions/")

"""A question of an agent, through the agents' own operation."""

from __future__ import annotations

import itertools
from typing import Any

from agents import intake, questions
from agents.models import Agent
from agents.schemas.questions import QuestionIn
from reviews.models import Question
from tests import worlds

_numbers = itertools.count(1)
FORM: dict[str, Any] = {
    "type": "object",
    "title": "Refund",
    "properties": {
        "how": {
            "type": "string",
            "title": "How is it refunded?",
            "enum": ["card", "voucher"],
            "enumNames": ["To the card", "As a voucher"],
        },
        "amount": {"type": "number", "minimum": 0, "maximum": 100},
        "parcels": {"type": "integer", "default": 1},
        "notify": {"type": "boolean", "title": "Notify the customer?"},
        "from_day": {"type": "string", "format": "date"},
        "labels": {
            "type": "array",
            "items": {"type": "string", "enum": ["urgent", "fragile"]},
        },
        "remark": {"type": "string", "maxLength": 200},
    },
    "required": ["how", "amount"],
}


def ask(agent: Agent, to: str = "money", **fields: Any) -> Question:
    """Ask people; `fields` are those of `POST /questions`."""
    body = QuestionIn.model_validate(
        {
            "thread": "t-ask",
            "to": to,
            "text": "How do we refund order 1180?",
            "schema": FORM,
            **fields,
        }
    )
    call = intake.parse_call_key(f"q{next(_numbers)}", "POST", "/questions", {})
    asked = questions.build_question_input(agent, body)
    stored = questions.ask_question(agent=agent, key=call, asked=asked)
    return Question.objects.get(pk=stored.body["id"])


def move_past_deadline(question: Question) -> None:
    """Move the question's deadline into the past."""
    worlds.rewrite(Question, question.pk, expires_at=question.asked_at)

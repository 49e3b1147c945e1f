"""The question that Riley asks people: its answer is data, and permits nothing."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from counterseal_client import Gate

log = logging.getLogger("riley")

THREAD = "returns-this-week"
KEY = "riley:returns-this-week"  # a new process finds the same question again
EXPIRES = timedelta(days=7)
TEXT = """\
Several customers send headphones back with a broken seal, and our rules do not say what
they get. How shall I settle these returns until the rules do?

I propose each refund as usual, whatever you answer."""
FORM: dict[str, Any] = {
    "type": "object",
    "title": "Returns with a broken seal",
    "properties": {
        "refund": {
            "type": "string",
            "title": "What do they get?",
            "enum": ["full", "partial", "none"],
            "enumNames": ["The full price", "A part of it", "Nothing"],
        },
        "percent": {
            "type": "integer",
            "title": "How much, in percent of the price?",
            "description": "Only for a part of it.",
            "minimum": 1,
            "maximum": 99,
        },
        "until": {
            "type": "string",
            "format": "date",
            "title": "Until which day does this hold?",
        },
        "proofs": {
            "type": "array",
            "title": "What must they send?",
            "items": {"type": "string", "enum": ["Receipt", "Photo", "Serial number"]},
        },
        "words": {"type": "string", "title": "What shall I write to them?"},
    },
    "required": ["refund"],
}


def ask_about_returns(gate: Gate) -> None:
    """Put the question, or find the one of an earlier process. Riley goes on working
    without waiting for the answer."""
    question = gate.open_question(
        "refunds",
        FORM,
        TEXT,
        expires=EXPIRES,
        thread=THREAD,
        idempotency_key=KEY,
    )
    log.info("%s: the question %s is %s", THREAD, question.id, question.status)
    if question.answer is not None:
        log.info("%s: people answered %s", THREAD, question.answer)

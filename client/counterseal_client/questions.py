"""Questions to people: with a form, and with the answer as data. An answer authorizes
nothing; an effect is still proposed.

    answer = gate.ask("refunds", Refund, "How do we refund order 1180?")
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from .calls import LONGEST_HOLD, Flow, Pause, quote_path
from .errors import CountersealError, InvalidAnswer
from .models import Question, list_field_errors, parse_answer
from .operations import QUICK, Operations
from .signatures import build_call_key
from .tools import number_call

if TYPE_CHECKING:
    from .gate import AsyncGate, Gate

logger = logging.getLogger(__name__)
R = TypeVar("R")

Schema = Mapping[str, Any] | type[Any]
"""A flat JSON Schema of an object, or a type that has one: a pydantic model, a
dataclass or a TypedDict. The answer is a dict, or an instance of the type."""

ANSWER_FIELD = "answer"
TEXT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {ANSWER_FIELD: {"type": "string"}},
    "required": [ANSWER_FIELD],
}
"""A form with one text."""


class QuestionError(CountersealError):
    """A question that ended, or still waits, without an answer. `question` is its state
    at the gate."""

    def __init__(self, question: Question, text: str, *, next_step: str = "") -> None:
        self.question = question
        super().__init__(text, next_step=next_step)


class QuestionOpen(QuestionError):
    """Nobody has answered within the time that the call waited. Ask the same again, in
    the same thread or with the same key, to go on waiting."""

    def __init__(self, question: Question) -> None:
        text = f"Nobody has answered yet: {question.url}"
        super().__init__(question, text, next_step="Ask again later to go on waiting.")


class QuestionDeclined(QuestionError):
    """A person declined to answer. `note` says why."""

    def __init__(self, question: Question) -> None:
        self.note = question.note
        words = f' They wrote: "{question.note}"' if question.note else ""
        step = "Carry on without the answer, or ask another question."
        text = f"A person declined to answer.{words}"
        super().__init__(question, text, next_step=step)


class QuestionExpired(QuestionError):
    """Nobody answered before the question expired."""

    def __init__(self, question: Question) -> None:
        step = "Ask again only if the answer is still needed."
        super().__init__(question, "Nobody answered in time.", next_step=step)


class QuestionWithdrawn(QuestionError):
    """The agent withdrew the question, its run ended, or a person stopped the agent."""

    def __init__(self, question: Question) -> None:
        super().__init__(question, "The question was withdrawn.")


_ERRORS: Mapping[str, Callable[[Question], QuestionError]] = {
    "open": QuestionOpen,
    "declined": QuestionDeclined,
    "expired": QuestionExpired,
    "withdrawn": QuestionWithdrawn,
}


@dataclass(frozen=True, slots=True)
class AnswerType:
    """What an answer is: the schema that the gate gets, and the type for the agent."""

    schema: Mapping[str, Any]
    adapter: TypeAdapter[Any] | None = None

    def load(self, question: Question) -> Any:
        """The answer of an answered question, as the type or as a dict."""
        if self.adapter is None:
            return question.answer
        try:
            return self.adapter.validate_json(json.dumps(question.answer))
        except ValidationError as error:
            name = getattr(self.adapter, "_type", self.adapter)
            raise InvalidAnswer(str(name), list_field_errors(error)) from error


def build_answer_type(schema: Schema) -> AnswerType:
    """What a caller gave, as the schema of an answer. Raises TypeError for a type that
    has no JSON Schema."""
    if isinstance(schema, Mapping):
        return AnswerType(schema)
    adapter: TypeAdapter[Any] = TypeAdapter(schema)
    return AnswerType(adapter.json_schema(), adapter)


def ask_people(
    operations: Operations,
    to: str,
    schema: Schema,
    text: str,
    *,
    expires: timedelta | float = timedelta(days=1),
    timeout: float | None = None,
    thread: str = "",
    idempotency_key: str = "",
) -> Flow[Any]:
    """Ask the people of a queue, or one person as `@login`, and return the answer.

    `schema` is the form of the answer (see `Schema`), `expires` how long people have,
    as a time or in seconds. Waits until the question ends, or for `timeout` seconds.

    The thread is the current one of `Gate.thread`, unless one is named. There the same
    question of a repeated run finds the first one, and its answer.

    Raises QuestionDeclined, QuestionExpired, QuestionWithdrawn; QuestionOpen after
    `timeout`; InvalidAnswer for an answer that its type refuses.
    """
    wanted = build_answer_type(schema)
    question = yield from open_question(
        operations,
        to,
        wanted.schema,
        text,
        expires=expires,
        thread=thread,
        idempotency_key=idempotency_key,
    )
    if question.status == "open":
        logger.warning("A question waits for an answer: %s", question.url)
        question = yield from wait_question(operations, question.id, timeout)
    if question.status in _ERRORS:
        raise _ERRORS[question.status](question)
    return wanted.load(question)


def open_question(
    operations: Operations,
    to: str,
    schema: Schema,
    text: str,
    *,
    expires: timedelta | float = timedelta(days=1),
    thread: str = "",
    idempotency_key: str = "",
) -> Flow[Question]:
    """Put the question of `ask_people`, and return it without waiting."""
    wanted = build_answer_type(schema).schema
    seconds = expires.total_seconds() if isinstance(expires, timedelta) else expires
    asked = {"to": to, "schema": wanted, "text": text, "expires_in": round(seconds)}
    numbered = number_call("ask", asked)
    run = thread or numbered.thread
    key = idempotency_key or build_call_key(run, numbered.call_id)
    body = {"thread": run, **asked}
    answer = yield from operations.post("/questions", body, key=key)
    return parse_answer(Question, answer)


def wait_question(
    operations: Operations, question: str, timeout: float | None = 300.0
) -> Flow[Question]:
    """Wait until a question has ended. Returns its state after `timeout` seconds at the
    latest; None waits until it ends, which it does at its deadline."""
    end = float("inf") if timeout is None else time.monotonic() + timeout
    now = yield from get_question(operations, question)
    while now.status == "open":
        left = end - time.monotonic()
        if left <= 0:
            break
        asked = time.monotonic()
        now = yield from get_question(operations, question, min(left, LONGEST_HOLD))
        if time.monotonic() - asked < QUICK and now.status == "open":
            yield Pause(min(left, QUICK))
    return now


def get_question(
    operations: Operations, question: str, hold: float = 0
) -> Flow[Question]:
    """Return the current state of a question, after `hold` seconds at the latest."""
    path = quote_path("questions", question)
    call = operations.connection.build_call("GET", path, hold=hold)
    return parse_answer(Question, (yield from operations.connection.send_call(call)))


def withdraw_question(operations: Operations, question: str) -> Flow[Question]:
    """Withdraw an open question."""
    path = quote_path("questions", question, "withdraw")
    return parse_answer(Question, (yield from operations.post(path, {})))


ASK_DOC = (
    "Ask a person a question and return the answer. Use it when you need to know what"
    " only people can tell. It permits nothing: call the tool for an action as usual.\n"
    "\n"
    "Args:\n"
    "    question: The whole question, with what a person needs to answer it."
)


def build_ask_tool(
    gate: Gate,
    to: str,
    *,
    schema: Mapping[str, Any] = TEXT_SCHEMA,
    name: str = "ask_human",
    **options: Any,
) -> Callable[[str], str]:
    """A plain function for a framework's own tools, with which a model asks people.

    It returns the text of a one-text form, else the answer as JSON. A question without
    an answer returns a sentence that says so. `options` are those of `Gate.ask`.
    """

    def ask(question: str) -> str:
        try:
            return _format_answer(gate.ask(to, schema, question, **options))
        except QuestionError as error:
            return str(error)

    return _describe_tool(ask, name)


def build_async_ask_tool(
    gate: AsyncGate,
    to: str,
    *,
    schema: Mapping[str, Any] = TEXT_SCHEMA,
    name: str = "ask_human",
    **options: Any,
) -> Callable[[str], Awaitable[str]]:
    """As `build_ask_tool`, a coroutine function."""

    async def ask(question: str) -> str:
        try:
            return _format_answer(await gate.ask(to, schema, question, **options))
        except QuestionError as error:
            return str(error)

    return _describe_tool(ask, name)


def _describe_tool(function: Callable[[str], R], name: str) -> Callable[[str], R]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = ASK_DOC
    # Frameworks read annotations as types, not as texts.
    function.__annotations__ = {"question": str, "return": str}
    return function


def format_ended_question(question: Question) -> str:
    """What a model reads of a question that has ended."""
    if question.answer is not None:
        return _format_answer(question.answer)
    return str(_ERRORS[question.status](question))


def _format_answer(answer: Mapping[str, Any]) -> str:
    if set(answer) == {ANSWER_FIELD}:
        return str(answer[ANSWER_FIELD])
    return json.dumps(answer, ensure_ascii=False)

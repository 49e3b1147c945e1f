"""Schemas of the endpoints for questions with a form."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, StrictInt

from .proposals import THREAD_PATTERN, check_has_words, check_thread_name
from .types import Strict, Timestamp

QUESTION_LENGTH = 4000  # characters
DAY_S = 24 * 3600
QuestionStatusName = Literal["open", "answered", "declined", "expired", "withdrawn"]


class QuestionIn(Strict):
    """`POST /questions`. `to` is a queue's name, or `@` and a person's login. `schema`
    is a flat JSON Schema of the answer. `expires_in` is in seconds."""

    thread: Annotated[
        str, Field(pattern=THREAD_PATTERN), AfterValidator(check_thread_name)
    ]
    to: Annotated[str, Field(min_length=1, max_length=151)]
    text: Annotated[
        str, Field(max_length=QUESTION_LENGTH), AfterValidator(check_has_words)
    ]
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    expires_in: Annotated[StrictInt, Field(ge=1, le=90 * DAY_S)] = DAY_S


class QuestionOut(BaseModel):
    """A question as its agent sees it. `answer` fits `schema` once the status is
    `answered`; `note` is why a person declined. No person who answered is named."""

    id: str
    url: str
    thread: str
    to: str
    status: QuestionStatusName
    text: str
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    asked_at: Timestamp
    expires_at: Timestamp
    settled_at: Timestamp | None
    answer: dict[str, Any] | None
    note: str

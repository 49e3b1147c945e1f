"""Endpoints for questions with a form: ask, read with a wait, and withdraw."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Router

from agents import idempotency, intake, questions
from agents.schemas.questions import QuestionIn, QuestionOut
from reviews.choices import QuestionStatus

from .auth import (
    AgentAuth,
    RequiredIdempotencyHeader,
    Wait,
    get_calling_agent,
    mark_replayed,
)

router = Router(auth=AgentAuth(), tags=["agents"], by_alias=True)


@router.post("/questions", response={201: QuestionOut, 200: QuestionOut})
def ask_question(
    request: HttpRequest,
    body: QuestionIn,
    wait: Wait = 0,
    key: RequiredIdempotencyHeader = None,
) -> HttpResponse:
    """Put a question to a queue or to one person, with a form for the answer. It
    authorizes nothing. A repeated call with the same `Idempotency-Key` and body returns
    the same question, with status 200 and `Idempotent-Replayed: true`. With `wait`
    (seconds) the call returns as soon as the question is answered, declined, expired or
    withdrawn, at the latest after that time."""
    agent = get_calling_agent(request)
    keyed = body.model_dump(mode="json", by_alias=True)
    call = intake.parse_call_key(key, "POST", "/questions", keyed)
    stored = idempotency.find_stored_answer(agent, call)
    if stored is None:
        intake.check_key_contents(call)
        asked = questions.build_question_input(agent, body)
        stored = questions.ask_question(agent=agent, key=call, asked=asked)
    if not stored.replayed:
        return _build_response(stored.body, status=stored.status, wait=wait)
    current = questions.load_own_question(agent, stored.body["id"])
    answer = questions.build_question_json(current)
    return mark_replayed(True, _build_response(answer, wait=wait))


@router.get("/questions/{question_id}", response=QuestionOut)
def get_question(
    request: HttpRequest, question_id: str, wait: Wait = 0
) -> HttpResponse:
    """Get one question. With `wait` (seconds) the call returns as soon as the question
    is answered, declined, expired or withdrawn, at the latest after that time."""
    question = questions.load_own_question(get_calling_agent(request), question_id)
    return _build_response(questions.build_question_json(question), wait=wait)


@router.post("/questions/{question_id}/withdraw", response=QuestionOut)
def withdraw_question(request: HttpRequest, question_id: str) -> HttpResponse:
    """Withdraw an open question. Nobody is asked any more."""
    question = questions.withdraw_question(
        agent=get_calling_agent(request), question_id=question_id
    )
    return _build_response(questions.build_question_json(question))


def _build_response(
    body: dict[str, object], *, status: int = 200, wait: int = 0
) -> HttpResponse:
    """The response with a question; hitl.live.long_poll holds it while the question is
    open."""
    response = JsonResponse(body, status=status)
    if wait and body["status"] == QuestionStatus.OPEN:
        response["Counterseal-Wait"] = f"{body['id']};0"
    return response

"""The endpoints of AuthZEN. An endpoint parses the body, calls one function, and
answers."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Router

from agents.api.auth import (
    AgentAuth,
    IdempotencyHeader,
    get_calling_agent,
    mark_replayed,
    record_refusal,
)
from agents.schemas.authzen import (
    AccessRequestIn,
    EvaluationIn,
    EvaluationOut,
    TaskResponse,
)

from . import evaluations, tasks

POLL_AFTER_S = 5
router = Router(auth=AgentAuth(), tags=["AuthZEN"], by_alias=True)


@router.post("/evaluation", response=EvaluationOut)
def evaluate_access(request: HttpRequest, body: EvaluationIn) -> HttpResponse:
    """Evaluate whether the subject may perform the action on the resource. Without an
    approval in the context the decision is a denial; `context.access_request` says that
    an approval can be requested. With one, the decision is a permit for exactly what
    was approved. An evaluation changes nothing."""
    decision = evaluations.evaluate_access(get_calling_agent(request), body)
    if decision.attempt is not None:
        record_refusal(request, decision.attempt)
    return JsonResponse(decision.build_json())


@router.post("/requests", response={201: TaskResponse, 202: TaskResponse})
def request_access(
    request: HttpRequest, body: AccessRequestIn, key: IdempotencyHeader = None
) -> HttpResponse:
    """Request the approval of what an evaluation denied. The answer is 202 while people
    decide, and 201 when the policy has decided at once. A repeated call with the same
    `Idempotency-Key` and body returns the same task, with `Idempotent-Replayed: true`;
    with another body it is refused with 409."""
    agent = get_calling_agent(request)
    stored = tasks.submit_request(agent, key, body)
    answer = tasks.build_task_json(agent, stored.proposal)
    pending = answer["task"]["status"] == "pending"
    response = JsonResponse(answer, status=202 if pending else 201)
    response["Location"] = answer["task"]["status_endpoint"]
    return mark_replayed(stored.replayed, response)


@router.get("/requests/{task_id}", response=TaskResponse)
def get_task(request: HttpRequest, task_id: str) -> HttpResponse:
    """Get the task of an access request. `Retry-After` says when to ask again."""
    answer = tasks.build_task_json(get_calling_agent(request), task_id)
    response = JsonResponse(answer)
    if answer["task"]["status"] == "pending":
        response["Retry-After"] = str(POLL_AFTER_S)
    return response


@router.post("/requests/{task_id}/cancel", response=TaskResponse)
def cancel_task(request: HttpRequest, task_id: str) -> HttpResponse:
    """Cancel a pending access request. A settled one is refused with 409."""
    return JsonResponse(tasks.cancel_task(get_calling_agent(request), task_id))

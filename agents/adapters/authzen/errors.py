"""The profile's own refusals, and how every refusal is answered on its endpoints."""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple

from journal.errors import DomainError, IdempotencyKeyReused

_URN = "urn:openid:authzen:access-request:error:"
# The status of input that the gate refuses: 422 on its own API, 400 in AuthZEN.
_INVALID = (HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.BAD_REQUEST)


class NotRequestable(DomainError):
    """This request answers no denial. Nothing was requested. Evaluate first, and send
    `denial` with the members of `context.access_request` in the decision."""

    code = "not_requestable"
    status = 400


class InvalidDenialBinding(DomainError):
    """The denial does not belong to this request. Nothing was requested.
    Evaluate again and send the members of that decision unchanged."""

    code = "invalid_denial_binding"
    status = 400


class ExpiredDenial(DomainError):
    """The denial has expired. Nothing was requested. Evaluate again."""

    code = "expired_denial"
    status = 410


class UnknownTask(DomainError):
    """There is no such task, or it belongs to another agent. Check the address."""

    code = "unknown_task"
    status = 404


class TaskExpired(DomainError):
    """The run of this task is over and its state is erased, so the approval can no
    longer be used. Evaluate again."""

    code = "task_expired"
    status = 410


class InvalidTaskState(DomainError):
    """This task is settled, so it cannot be cancelled. Nothing was changed."""

    code = "invalid_task_state"
    status = 409


class ApprovalUnverifiable(DomainError):
    """This approval does not exist, belongs to another agent or is not signed by this
    gate. Nothing was permitted."""

    code = "approval_unverifiable"


class ApprovalOutOfScope(DomainError):
    """This approval is for another subject, resource, action or context.
    Nothing was permitted."""

    code = "out_of_scope"


_PROFILE_CODES = {
    error.code: error.code
    for error in (
        NotRequestable,
        InvalidDenialBinding,
        ExpiredDenial,
        UnknownTask,
        TaskExpired,
        InvalidTaskState,
    )
} | {IdempotencyKeyReused.code: "duplicate_request"}


class ProblemForm(NamedTuple):
    """The status and the problem type of a refusal."""

    status: int
    type: str


def describe_problem(error: DomainError) -> ProblemForm:
    """How the profile answers a refusal (its section "Error Responses"): with its own
    problem type where it defines one."""
    code = _PROFILE_CODES.get(error.code)
    if isinstance(error, IdempotencyKeyReused):
        return ProblemForm(HTTPStatus.CONFLICT, f"{_URN}{code}")
    refused, answered = _INVALID
    status = answered if error.status == refused else error.status
    return ProblemForm(status, f"{_URN}{code}" if code else "about:blank")

"""Endpoints for people, called with a session or a personal token, never with an
agent's key (docs/invariants.md I17). They have the same checks and error codes as the
pages, but no minimum time on the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Query, Router
from ninja.security.base import AuthBase
from ninja.utils import check_csrf
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
)
from structlog.contextvars import bind_contextvars

from journal import clock, cursors
from journal.errors import (
    InvalidAgentKey,
    InvalidInput,
    NotAPerson,
    NotFound,
    ReviewerRateLimited,
    build_field_error,
)
from policies.models import Person
from policies.step_up import TypedProof
from reviews.choices import VERDICT_SPECS, RequestStatus, Verdict
from reviews.decisions import decide as decisions
from reviews.decisions import modify, submission
from reviews.decisions.checks import MOST_EXPECTED
from reviews.decisions.submission import StepUpProof, VerdictSubmission
from reviews.dialogue import messages
from reviews.governance import readings
from reviews.grants.grants import NO_CONDITIONS, ExpectedValue, GrantConditions
from reviews.models import ApprovalRequest
from reviews.people import tokens

from ..components import visibility
from ..components.throttle import RateLimiter
from ..forms import CODE_LENGTH
from . import requests as queries
from . import schemas
from .schemas import EditPreviewOut, RequestDetailOut, RequestPage

PAGE = 100
# Each preview may call the tool's reader.
_PREVIEW_LIMITER = RateLimiter(most=60, seconds=60)
AGENT_MARK = "cs_"
REASONS = "; ".join(
    f"{verdict.value}: {', '.join(spec.reasons)}"
    for verdict, spec in VERDICT_SPECS.items()
)
REASON_CODE = (
    f"The reason, as the agent receives it. Any other value is refused with 422"
    f" `reason`. {REASONS}. `other` requires `reason`."
)
READING = (
    "The request's `reading` that was shown. If it has changed since, the decision is"
    " refused with `precondition`."
)


class PersonAuth(AuthBase):
    """Authenticate by a personal token, or by the page's session with its CSRF check.

    Raises InvalidAgentKey, and NotAPerson for an agent's key.
    """

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __call__(self, request: HttpRequest) -> Person:
        if "HTTP_AUTHORIZATION" not in request.META:
            return self._of_session(request)
        kind, _, text = request.META["HTTP_AUTHORIZATION"].partition(" ")
        if kind.lower() != "bearer":
            raise InvalidAgentKey
        if text.startswith(AGENT_MARK):
            raise NotAPerson
        request.by_token = True  # type: ignore[attr-defined]
        return self._known(tokens.authenticate_token(text))

    def _of_session(self, request: HttpRequest) -> Person:
        if not request.user.is_authenticated or check_csrf(request):
            raise InvalidAgentKey("Sign in first, or send a personal token.")
        return self._known(request.user)

    def _known(self, person: Person) -> Person:
        bind_contextvars(person=person.public_id)
        return person


router = Router(auth=PersonAuth(), tags=["people"], by_alias=True)
router.add_decorator(schemas.reject_unknown_parameters, mode="operation")


class ExpectedIn(BaseModel):
    """A field of the tool's reading, and the value that it must have right before the
    effect."""

    model_config = ConfigDict(extra="forbid")

    field: Annotated[str, Field(min_length=1, max_length=200)]
    value: (
        StrictBool | StrictInt | float | Annotated[str, Field(max_length=4096)] | None
    )


MAX_NUMBER = 2**31 - 1  # of a version or a round
ConditionTime = Annotated[AwareDatetime, AfterValidator(clock.check_usable)]


class ConditionsIn(BaseModel):
    """Conditions of an approval. If one does not hold when the effect would begin, the
    execution is refused. Those of all approvals apply together."""

    model_config = ConfigDict(extra="forbid")

    not_before: ConditionTime | None = None
    not_after: ConditionTime | None = None
    expect: list[ExpectedIn] = Field(default_factory=list, max_length=MOST_EXPECTED)


class DecideIn(BaseModel):
    """A verdict on exactly the version and bytes that were shown."""

    model_config = ConfigDict(extra="forbid")

    version: Annotated[StrictInt, Field(ge=1, le=MAX_NUMBER)]
    action_hash: Annotated[str, Field(max_length=80)]
    verdict: Literal["approve", "reject", "modify", "escalate"]
    reason_code: Annotated[str, Field(max_length=16, description=REASON_CODE)] = ""
    reason: Annotated[str, Field(max_length=4096)] = ""
    args: dict[str, Any] | None = None  # only with `modify`
    reading: Annotated[str, Field(max_length=80, description=READING)] = ""
    conditions: ConditionsIn | None = None  # only with `approve`
    # For a step-up; ignored with a personal token, which never suffices.
    password: Annotated[str, Field(max_length=1024)] = ""
    one_time_code: Annotated[str, Field(max_length=CODE_LENGTH)] = ""


class EditIn(BaseModel):
    """An edit of exactly the version and bytes that were shown."""

    model_config = ConfigDict(extra="forbid")

    version: Annotated[StrictInt, Field(ge=1)]
    action_hash: Annotated[str, Field(max_length=80)]
    args: dict[str, Any]


class RequestMessageIn(BaseModel):
    """A message to the agent about exactly the version that was shown. `send_back`
    returns the request to its agent for revision."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["question", "answer", "send_back"]
    version: Annotated[StrictInt, Field(ge=1, le=MAX_NUMBER)]
    text: Annotated[str, Field(max_length=messages.TEXT_LENGTH)]
    # The agent's question that an answer answers; the oldest one by default.
    round: Annotated[StrictInt, Field(ge=1, le=MAX_NUMBER)] | None = None


def read_caller(request: HttpRequest) -> Person:
    """The calling person, as authenticated by `PersonAuth`."""
    person: Person = request.auth  # type: ignore[attr-defined]
    return person


@router.get("/requests", response=RequestPage)
def list_requests(
    request: HttpRequest,
    status: RequestStatus = RequestStatus.PENDING,
    agent: str = "",
    tool: str = "",
    limit: Annotated[int, Query(PAGE, ge=1, le=PAGE)] = PAGE,
    cursor: str = "",
) -> HttpResponse:
    """List the requests that this person may see, earliest deadline first."""
    person = read_caller(request)
    rows = visibility.select_visible_requests(person).filter(status=status)
    if agent:
        rows = rows.filter(proposal__agent=agent)
    if tool:
        rows = rows.filter(proposal__tool_name=tool)
    page = list(queries.select_after(rows, cursors.parse_cursor(cursor))[: limit + 1])
    asked = queries.load_for_person(person, page[:limit])
    return JsonResponse(
        {
            "items": [queries.build_line(loaded) for loaded in asked],
            "next_cursor": cursors.build_next_cursor(page, limit, "expires_at"),
        }
    )


@router.get("/requests/{request_id}", response=RequestDetailOut)
def get_request(request: HttpRequest, request_id: str) -> HttpResponse:
    """Return one request. Returns 404 if this person may not see it."""
    return _build_response(read_caller(request), request_id)


@router.post("/requests/{request_id}/decide", response=RequestDetailOut)
def decide(request: HttpRequest, request_id: str, body: DecideIn) -> HttpResponse:
    """Record a verdict on one request. The same call again, by the same person, changes
    nothing and is answered with the request as it is now; an edit is refused then."""
    person = read_caller(request)
    asked = load_visible_request(person, request_id)
    _check_belonging(body)
    verdict = VerdictSubmission(
        request_id=request_id,
        person=person,
        verdict=Verdict(body.verdict),
        version=body.version,
        action_hash=body.action_hash,
        reason_code=body.reason_code,
        reason=body.reason,
        args=None
        if body.args is None
        else queries.restore_sensitive(asked.sealed.revision, body.args),
        reading=_find_reading_number(asked, body.reading),
        conditions=_build_conditions(body.conditions),
    )
    decisions.decide_repeatably(
        replace(verdict, step_up=_prove_step_up(request, verdict, body))
    )
    return _build_response(person, request_id)


@router.post("/requests/{request_id}/preview", response=EditPreviewOut)
def preview_edit(request: HttpRequest, request_id: str, body: EditIn) -> HttpResponse:
    """Say what an edit would need before it is decided with `modify`. Refused as the
    edit itself would be."""
    person = read_caller(request)
    asked = load_visible_request(person, request_id)
    if not _PREVIEW_LIMITER.allows(person.pk):
        raise ReviewerRateLimited("Too many previews in a minute. Try again later.")
    requirements = modify.preview_edit(
        VerdictSubmission(
            request_id=request_id,
            person=person,
            verdict=Verdict.MODIFY,
            version=body.version,
            action_hash=body.action_hash,
            args=queries.restore_sensitive(asked.sealed.revision, body.args),
        )
    )
    return JsonResponse(queries.build_edit_preview(requirements))


@router.post("/requests/{request_id}/messages", response=RequestDetailOut)
def write_to_agent(
    request: HttpRequest, request_id: str, body: RequestMessageIn
) -> HttpResponse:
    """Ask the agent, answer its question, or send the request back to it for revision.
    Only a person who may decide the request may do so; nothing is decided, and the
    deadline stands. Refused with 409 `rounds` when the request has no round left,
    `unanswered` while the agent has not answered your last question, `returned` while
    it is with its agent, and `no_question` for an answer that nobody waits for."""
    person = read_caller(request)
    load_visible_request(person, request_id)
    message: dict[str, Any] = {
        "request_id": request_id,
        "person": person,
        "version": body.version,
        "text": body.text,
    }
    if body.kind == "answer":
        messages.answer_question(**message, round_=body.round or 0)
    elif body.round is not None:
        rule = "only an answer names a round; leave it out"
        raise InvalidInput(errors=[build_field_error("round", rule)])
    elif body.kind == "question":
        messages.ask_agent(**message)
    else:
        messages.send_back(**message)
    return _build_response(person, request_id)


def _check_belonging(body: DecideIn) -> None:
    """Check that nothing in the body belongs to another verdict: a person who sends it
    means something that would not happen. Raises InvalidInput."""
    errors = []
    if body.args is not None and body.verdict != Verdict.MODIFY.value:
        rule = "only `modify` takes arguments; leave them out, or send `modify`"
        errors.append(build_field_error("args", rule))
    if body.conditions is not None and body.verdict != Verdict.APPROVE.value:
        rule = "only an approval takes conditions; leave them out"
        errors.append(build_field_error("conditions", rule))
    if errors:
        raise InvalidInput(errors=errors)


def _build_conditions(conditions: ConditionsIn | None) -> GrantConditions:
    if conditions is None:
        return NO_CONDITIONS
    expected = tuple(
        ExpectedValue(expectation.field, expectation.value)
        for expectation in conditions.expect
    )
    return GrantConditions(conditions.not_before, conditions.not_after, expected)


def _find_reading_number(asked: ApprovalRequest, reading: str) -> int | None:
    if not reading:
        return None
    return readings.find_reading_number(asked.sealed.revision, reading)


def _prove_step_up(
    request: HttpRequest, verdict: VerdictSubmission, body: DecideIn
) -> StepUpProof | None:
    if getattr(request, "by_token", False):
        return None  # a token never suffices, even with a password
    return submission.prove_identity(
        request,
        verdict.person,
        TypedProof(body.password, body.one_time_code),
        verdict.bound,
        clock.now(),
    )


def load_visible_request(person: Person, request_id: str) -> ApprovalRequest:
    """Raises NotFound for a request that this person may not see."""
    request = visibility.find_visible_request(person, request_id)
    if request is None:
        raise NotFound
    return request


def _build_response(person: Person, request_id: str) -> HttpResponse:
    (asked,) = queries.load_for_person(
        person, [load_visible_request(person, request_id)]
    )
    return JsonResponse(queries.build_detail(person, asked))

"""The HTTP API, version 1: one strict parser and one form of refusal for agents and
people. What each may call is in `agents.api` and `reviews.api.people`."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.operation import Operation
from ninja.parser import Parser
from ninja.responses import Response

from agents import api as agents_api
from agents import schema_alarm
from agents.schemas import LetterOut
from journal import canonical
from journal.errors import BadKey, DomainError, Invalid, InvalidOutcome, NotFound
from reviews.api import batches
from reviews.api import people as reviews_api

from . import problems


class StrictParser(Parser):
    """UTF-8, no duplicate keys, no NaN: see `journal.canonical`."""

    def parse_body(self, request: HttpRequest) -> Any:
        return canonical.parse(request.body)


def _letters() -> dict[str, Any]:
    """What the gate itself calls, as OpenAPI describes it: every event has one form."""
    schema = LetterOut.model_json_schema()
    content = {"application/json": {"schema": schema}}
    events = get_args(LetterOut.model_fields["type"].annotation)
    call = {
        "description": "Sent to an agent's endpoint; any 2xx says that it was taken.",
        "requestBody": {"required": True, "content": content},
        "responses": {"2XX": {"description": "taken"}},
    }
    return {event: {"post": call} for event in events}


# Operations that were published under the name of another module keep it.
NAMED = {"reviews.api.batches": "reviews_batch_api"}


class Api(NinjaAPI):
    """An operation is called by its package, in whichever module of it it stands: what
    was generated from the description goes on."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        module, name = operation.view_func.__module__, operation.view_func.__name__
        app, package, *_ = module.split(".")
        return f"{NAMED.get(module, f'{app}_{package}')}_{name}"


api = Api(
    title="Holdpoint",
    version="1",
    description="The approval gate for agents that act in the real world.",
    urls_namespace="api",
    docs_url=None,
    parser=StrictParser(),
    openapi_extra={"webhooks": _letters()},
)
api.add_router("", agents_api.router)
api.add_router("", reviews_api.router)
api.add_router("", batches.router)


@api.exception_handler(DomainError)
def refused(request: HttpRequest, error: DomainError) -> HttpResponse:
    """A refusal as a problem; an agent's is also a log record."""
    agents_api.note_refusal(request, error)
    return problems.refusal(request, error)


@api.exception_handler(InvalidOutcome)
def unfitting(request: HttpRequest, error: InvalidOutcome) -> HttpResponse:
    """Nothing is better than half an outcome: a reference, and an alarm for people."""
    reference = getattr(request, "request_id", "")
    schema_alarm.alarm(error=error, reference=reference)
    detail = f"{error.detail} Reference {reference}."
    return problems.problem(error.status, error.code, detail)


@api.exception_handler(ValidationError)
def ill_typed(request: HttpRequest, error: ValidationError) -> HttpResponse:
    return refused(request, Invalid(errors=[_entry(fault) for fault in error.errors]))


@api.exception_handler(AuthenticationError)
def unknown_caller(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return problems.refusal(request, BadKey())


@api.exception_handler(HttpError)
def refused_by_framework(request: HttpRequest, error: HttpError) -> HttpResponse:
    """What the framework itself refuses; it wraps what the strict parser raised."""
    if isinstance(error.__cause__, DomainError):
        return refused(request, error.__cause__)
    known = NotFound() if error.status_code == 404 else Invalid()
    return problems.refusal(request, known)


@cache
def description() -> dict[str, Any]:
    """The API as OpenAPI describes it. Made once: it takes long, and anyone may ask."""
    return api.get_openapi_schema()


@cache
def _document() -> bytes:
    return Response(description()).content


@require_safe  # else it would answer every method
def openapi(request: HttpRequest) -> HttpResponse:
    return HttpResponse(_document(), content_type="application/json")


def urls() -> list[Any]:
    """The API's routes: they answer 401 themselves, never a redirect to a page."""
    routes: list[Any] = api.urls[0]
    for route in routes:
        if route.name == "openapi-json":
            route.callback = openapi
        route.callback.login_required = False
    return routes


def _entry(fault: dict[str, Any]) -> Any:
    """A pydantic fault as path and rule, without the value, which may be a secret."""
    where = [str(part) for part in fault["loc"]][1:]
    if where and where[0] == "body":
        where = where[1:]
    return {"path": ".".join(where) or "body", "message": str(fault["msg"])}

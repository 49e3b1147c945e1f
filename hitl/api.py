"""The HTTP API, version 1: one strict parser and one form of refusal for every caller.

The endpoints themselves are in `agents.api`, `agents.adapters` and `desk.api`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, get_args

from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.operation import Operation
from ninja.parser import Parser
from ninja.responses import Response

from agents import api as agents_api
from agents import schema_alarm
from agents.adapters import authzen
from agents.api.auth import KEY_REQUIRED
from agents.schemas.webhooks import WebhookEventOut
from desk.api import batches, people, standing_grants
from journal import canonical
from journal.errors import (
    DomainError,
    EncodedBody,
    InvalidAgentKey,
    InvalidInput,
    InvalidOutcome,
    NotFound,
)

from . import problems
from .live.callers import ACCESS, API


class StrictParser(Parser):
    """Accepts UTF-8 JSON without duplicate keys or NaN; see `journal.canonical`. A body
    that is compressed is refused: its size would not be known before it is read."""

    def parse_body(self, request: HttpRequest) -> Any:
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise EncodedBody
        return canonical.parse(request.body)


SCHEMA = "#/components/schemas/{model}"
WEBHOOK_EVENT = WebhookEventOut.__name__


def _build_webhooks() -> dict[str, Any]:
    """The `webhooks` section of the OpenAPI document: all events share one schema."""
    content = {
        "application/json": {"schema": {"$ref": SCHEMA.format(model=WEBHOOK_EVENT)}}
    }
    events = get_args(WebhookEventOut.model_fields["type"].annotation)
    call = {
        "description": "Sent to an agent's endpoint. Any 2xx response accepts it.",
        "requestBody": {"required": True, "content": content},
        "responses": {"2XX": {"description": "accepted"}},
    }
    return {event: {"post": call} for event in events}


def _build_event_schemas() -> dict[str, Any]:
    """The schema of a webhook's body, and those that it refers to, by name."""
    event = WebhookEventOut.model_json_schema(ref_template=SCHEMA)
    return {**event.pop("$defs"), WEBHOOK_EVENT: event}


# Operation ids that were published under another module name must not change.
OPERATION_PREFIXES = {
    "desk.api.batches": "reviews_batch_api",
    "desk.api": "reviews_api",
}


class CountersealApi(NinjaAPI):
    """The API; its operation ids name the package of an endpoint, not its module, so
    that clients generated from the OpenAPI document survive a move between modules."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        module, name = operation.view_func.__module__, operation.view_func.__name__
        package = ".".join(module.split(".")[:2])
        prefixes = OPERATION_PREFIXES
        prefix = prefixes.get(module) or prefixes.get(package)
        return f"{prefix or package.replace('.', '_')}_{name}"

    def get_openapi_schema(self, **options: Any) -> Any:
        """The OpenAPI document, which also has the webhooks' schemas, and says which
        headers an endpoint refuses to do without."""
        description = super().get_openapi_schema(**options)
        description["components"]["schemas"] |= _build_event_schemas()
        for call in description["paths"].values():
            for operation in call.values():
                for parameter in operation.get("parameters", []):
                    _mark_required(parameter)
        return description

    def get_root_path(self, path_params: dict[str, Any]) -> str:
        """The routers carry whole paths, so nothing stands before them."""
        return "/"


def _mark_required(parameter: dict[str, Any]) -> None:
    """Mark a parameter as required whose absence the endpoint itself refuses."""
    if parameter.get("description") == KEY_REQUIRED:
        schema = parameter["schema"]
        (text,) = (
            choice for choice in schema.pop("anyOf") if choice != {"type": "null"}
        )
        parameter["required"] = True
        schema |= text


api = CountersealApi(
    title="Counterseal",
    version="1",
    description="The approval gate for agents that act in the real world.",
    urls_namespace="api",
    docs_url=None,
    openapi_url=f"{API}openapi.json",
    parser=StrictParser(),
    openapi_extra={"webhooks": _build_webhooks()},
)
api.add_router(API, agents_api.router)
api.add_router(API, people.router)
api.add_router(API, batches.router)
api.add_router(API, standing_grants.router)
api.add_router(ACCESS, authzen.router)


@api.exception_handler(DomainError)
def handle_domain_error(request: HttpRequest, error: DomainError) -> HttpResponse:
    """Answer a domain error with problem details; record it in the log if the caller is
    an agent."""
    agents_api.record_refusal(request, error)
    return problems.render_refusal(request, error)


@api.exception_handler(InvalidOutcome)
def handle_invalid_outcome(request: HttpRequest, error: InvalidOutcome) -> HttpResponse:
    """Answer with a reference instead of an incomplete outcome, and raise an alarm."""
    reference = getattr(request, "request_id", "")
    schema_alarm.raise_schema_alarm(error=error, reference=reference)
    detail = f"{error.detail} Reference {reference}."
    return problems.build_problem(error.status, error.code, detail)


@api.exception_handler(ValidationError)
def handle_validation_error(
    request: HttpRequest, error: ValidationError
) -> HttpResponse:
    """Answer 422 with one entry for each field that failed validation."""
    return handle_domain_error(
        request, InvalidInput(errors=[_to_field_error(fault) for fault in error.errors])
    )


@api.exception_handler(AuthenticationError)
def handle_authentication_error(
    request: HttpRequest, error: AuthenticationError
) -> HttpResponse:
    """Answer a missing or invalid key as `BadKey`."""
    return problems.render_refusal(request, InvalidAgentKey())


@api.exception_handler(HttpError)
def handle_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    """Answer what django-ninja refuses itself. It wraps the domain errors of the strict
    parser in an HttpError."""
    if isinstance(error.__cause__, DomainError):
        return handle_domain_error(request, error.__cause__)
    known = NotFound() if error.status_code == 404 else InvalidInput()
    return problems.render_refusal(request, known)


@cache
def build_description() -> dict[str, Any]:
    """The OpenAPI document. Cached: it is slow to build, and anyone may ask for it."""
    document: dict[str, Any] = api.get_openapi_schema()
    return document


@cache
def _encode_description() -> bytes:
    return Response(build_description()).content


@require_safe  # a plain callback would answer every method
def openapi(request: HttpRequest) -> HttpResponse:
    """The OpenAPI document as JSON."""
    return HttpResponse(_encode_description(), content_type="application/json")


def build_routes() -> list[Any]:
    """The API's routes with their whole paths, exempt from the login redirect: the API
    answers 401 itself."""
    routes: list[Any] = api.urls[0]
    root = routes.pop()
    routes.append(path(API.lstrip("/"), root.callback, name=root.name))
    for route in routes:
        if route.name == "openapi-json":
            route.callback = openapi
        route.callback = _answer_head(route.callback)
        route.callback.login_required = False
    return routes


def _answer_head(view: Callable[..., Any]) -> Callable[..., Any]:
    """Let a view that answers GET answer HEAD too (RFC 9110, 9.3.2). The server leaves
    out the body."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **values: Any) -> Any:
        if request.method != "HEAD":
            return view(request, *args, **values)
        request.method = "GET"
        try:
            return view(request, *args, **values)
        finally:
            request.method = "HEAD"

    return answer


def _to_field_error(fault: dict[str, Any]) -> Any:
    """Convert a pydantic error to path and message. Leaves out the value, which may be
    a secret."""
    where = [str(part) for part in fault["loc"]][1:]
    if where and where[0] == "body":
        where = where[1:]
    message = str(fault["msg"]).removeprefix("Value error, ")
    return {"path": ".".join(where) or "body", "message": message}

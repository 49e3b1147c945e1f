"""How a refusal looks: problem details for the API, a notice for htmx, else a page.

Errors of the API are RFC 9457 problem details with the codes of api.md's table.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string, select_template

from journal.errors import DomainError, FieldError, Restored
from reviews.desk.components.htmx import wants_partial

API = "/api/"
MEDIA_TYPE = "application/problem+json"


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: list[FieldError] | None = None,
    **facts: Any,
) -> JsonResponse:
    """One problem as JSON; `retry_after` seconds also become the header."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        "errors": errors or [],
        **facts,
    }
    response = JsonResponse(body, status=status, content_type=MEDIA_TYPE)
    if "retry_after" in facts:
        response["Retry-After"] = str(facts["retry_after"])
    return response


def refusal(request: HttpRequest, error: DomainError) -> HttpResponse:
    """A domain error in the form that this request can show."""
    if request.path.startswith(API):
        return problem(
            error.status, error.code, error.detail, errors=error.errors, **error.facts
        )
    return page(request, error.status, error.code, error.detail, errors=error.errors)


def page(
    request: HttpRequest,
    status: int,
    code: str,
    detail: str,
    *,
    errors: list[FieldError] | None = None,
) -> HttpResponse:
    """The page of this status, or for htmx the `#notice` alone."""
    context = {
        "status": status,
        "title": HTTPStatus(status).phrase,
        "code": code,
        "detail": detail,
        "errors": errors or [],
        "request_id": getattr(request, "request_id", ""),
    }
    # When we failed, so may what the context processors would ask.
    known = request if status < 500 or code == Restored.code else None
    if wants_partial(request):
        html = render_to_string("_notice.html", context, known)
        response = HttpResponse(html, status=status)
        # Whatever the button wanted to replace, a refusal belongs into the notice.
        response["HX-Retarget"] = "#notice"
        response["HX-Reswap"] = "outerHTML"
    else:
        template = select_template([f"{status}.html", "error.html"])
        response = HttpResponse(template.render(context, known), status=status)
    response["Vary"] = "HX-Request"
    return response

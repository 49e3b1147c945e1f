"""Renders refusals: problem details for the API, a notice for htmx, a page otherwise.

Problem details follow RFC 9457, with the codes of `journal.errors`. The endpoints of
AuthZEN answer with the statuses and problem types of that profile.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.urls import reverse

from agents.adapters import authzen
from desk.components.htmx import wants_partial
from desk.forms import ArmForm
from desk.scim import answers as scim
from journal.errors import (
    DatabaseRestored,
    DomainError,
    FieldError,
    SignedOut,
    Unavailable,
)

ACCESS = "/access/"
JSON_PATHS = ("/api/", ACCESS, scim.SCIM)
API_HINT = " See `errors` for details."  # for programs; a page shows the errors
# Statuses after which the person can go on at the approval request.
LEADING_BACK = {HTTPStatus.CONFLICT, HTTPStatus.GONE, HTTPStatus.UNPROCESSABLE_ENTITY}
MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 5
UNAVAILABLE_PAGE = (
    "Counterseal cannot reach its database at the moment. Your change may not have been"
    " recorded: check before you send it again."
)
# The headlines of the error page; another status has one that says little.
HEADLINES: dict[int, str] = {
    HTTPStatus.FORBIDDEN: "You do not have permission",
    HTTPStatus.NOT_FOUND: "Not found",
    HTTPStatus.CONFLICT: "This changed while you were working",
    HTTPStatus.GONE: "No longer possible",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Check your input",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many requests",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Something went wrong on our side",
}


def build_problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: list[FieldError] | None = None,
    **facts: Any,
) -> JsonResponse:
    """One refusal as problem details. `facts` become members of the JSON, in place of
    those of the same name; the seconds of `retry_after` also become the header."""
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


def build_program_error(
    path: str, status: int, code: str, detail: str, **facts: Any
) -> JsonResponse:
    """An error for a program that called this path, in the form of its protocol."""
    if path.startswith(scim.SCIM):
        response = scim.build_error(status, detail)
        if "retry_after" in facts:
            response["Retry-After"] = str(facts["retry_after"])
        return response
    return build_problem(status, code, detail, **facts)


def render_refusal(request: HttpRequest, error: DomainError) -> HttpResponse:
    """Render a domain error in the form that this request accepts."""
    if request.path.startswith(ACCESS):
        return _build_access_problem(error)
    if request.path.startswith(scim.SCIM):
        return scim.build_refusal(error)
    if request.path.startswith(JSON_PATHS):
        return build_problem(
            error.status, error.code, error.detail, errors=error.errors, **error.facts
        )
    return render_error_page(
        request, error.status, error.code, error.detail, errors=error.errors
    )


def is_database_away(error: BaseException | None) -> bool:
    """Whether the database could not serve: it cannot be reached, goes down, is now a
    standby, or its disk or its connections are used up (SQLSTATE classes 08 and 53,
    57P01 to 57P05, and 25006)."""
    if not isinstance(error, DatabaseError):
        return False
    state = getattr(error.__cause__, "sqlstate", None)
    if state is None:  # no server answered
        return isinstance(error, OperationalError | InterfaceError)
    return str(state).startswith(("08", "53", "57P", "25006"))


def render_unavailable(request: HttpRequest) -> HttpResponse:
    """503 while the database is away. What the call sent may have been recorded: the
    connection can break after the commit."""
    reference = getattr(request, "request_id", "")
    if request.path.startswith(JSON_PATHS):
        error = Unavailable(retry_after=RETRY_AFTER_S)
        error.detail += f" Reference {reference}."
        return render_refusal(request, error)
    detail = f"{UNAVAILABLE_PAGE} Reference {reference}."
    title = "Counterseal cannot answer at the moment"
    response = render_error_page(request, 503, Unavailable.code, detail, title=title)
    response["Retry-After"] = str(RETRY_AFTER_S)
    return response


def _build_access_problem(error: DomainError) -> JsonResponse:
    form = authzen.errors.describe_problem(error)
    response = build_problem(
        form.status,
        error.code,
        error.detail,
        errors=error.errors,
        type=form.type,
        **error.facts,
    )
    if form.status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = "Bearer"  # RFC 6750, which the profile asks for
    return response


def render_error_page(
    request: HttpRequest,
    status: int,
    code: str,
    detail: str,
    *,
    errors: list[FieldError] | None = None,
    title: str = "",
    signs_in: bool = False,
) -> HttpResponse:
    """The error page of this status, or `#notice` alone for htmx.

    `title` replaces the headline of the status. With `signs_in` the page links to the
    sign-in page.
    """
    known_request = _find_request_url(request)
    leads_back = status in LEADING_BACK or code == SignedOut.code
    context = {
        "status": status,
        "title": title or HEADLINES.get(status, ""),
        "code": code,
        "detail": detail.replace(API_HINT, ""),
        "errors": errors or [],
        "request_url": known_request if leads_back and not signs_in else "",
        "sign_in_url": _build_sign_in_url(_find_armed_url(request) or known_request)
        if signs_in
        else "",
        "request_id": getattr(request, "request_id", ""),
    }
    # After a server error, the context processors' queries may fail too.
    known = request if status < 500 or code == DatabaseRestored.code else None
    if wants_partial(request):
        html = render_to_string("_notice.html", context, known)
        response = HttpResponse(html, status=status)
        # The refusal replaces the notice, not the target of the button.
        response["HX-Retarget"] = "#notice"
        response["HX-Reswap"] = "outerHTML"
    else:
        template = "error.html" if known or status < 500 else "500.html"
        html = render_to_string(template, context, known)
        response = HttpResponse(html, status=status)
    response["Vary"] = "HX-Request"
    return response


def _find_request_url(request: HttpRequest) -> str:
    """The page of the approval request that this address is about, if any."""
    match = request.resolver_match
    if match is None or not match.route.startswith("requests/<str:pk>/"):
        return ""
    return reverse("reviews:request_detail", args=[match.kwargs["pk"]])


def _find_armed_url(request: HttpRequest) -> str:
    """The page with the panel that was sent, if this was the form of one."""
    match = request.resolver_match
    armed = request.POST.get("verdict", "") or request.POST.get("panel", "")
    if (
        match is None
        or "pk" not in match.kwargs
        or not ArmForm({"arm": armed}).is_valid()
    ):
        return ""
    return f"{reverse('reviews:decide', args=[match.kwargs['pk']])}?arm={armed}"


def _build_sign_in_url(then: str) -> str:
    query = f"?{urlencode({'next': then})}" if then else ""
    return reverse("reviews:sign_in") + query

"""Renders refusals: problem details for the API, a notice for htmx, a page otherwise.

Problem details follow RFC 9457, with the codes of `journal.errors`. The endpoints of
AuthZEN answer with the statuses and problem types of that profile.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.urls import reverse

from agents.adapters import authzen
from desk.components.htmx import wants_partial
from desk.forms import ArmForm
from journal.errors import DatabaseRestored, DomainError, FieldError, SignedOut

ACCESS = "/access/"
JSON_PATHS = ("/api/", ACCESS)
API_HINT = " See `errors` for details."  # for programs; a page shows the errors
# Statuses after which the person can go on at the approval request.
LEADING_BACK = {HTTPStatus.CONFLICT, HTTPStatus.GONE, HTTPStatus.UNPROCESSABLE_ENTITY}
MEDIA_TYPE = "application/problem+json"
# The headlines of the error page; another status has one that says little.
HEADLINES: dict[int, str] = {
    HTTPStatus.FORBIDDEN: "You do not have permission",
    HTTPStatus.NOT_FOUND: "Not found",
    HTTPStatus.CONFLICT: "This changed while you were working",
    HTTPStatus.GONE: "No longer possible",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Check your input",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many requests",
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


def render_refusal(request: HttpRequest, error: DomainError) -> HttpResponse:
    """Render a domain error in the form that this request accepts."""
    if request.path.startswith(ACCESS):
        return _build_access_problem(error)
    if request.path.startswith(JSON_PATHS):
        return build_problem(
            error.status, error.code, error.detail, errors=error.errors, **error.facts
        )
    return render_error_page(
        request, error.status, error.code, error.detail, errors=error.errors
    )


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
        template = "500.html" if status == 500 else "error.html"
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

"""The error views that Django and its middleware call."""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.core.exceptions import (
    BadRequest,
    DisallowedHost,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.http import HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.urls import Resolver404, resolve
from structlog.stdlib import get_logger

from . import problems

log = get_logger(__name__)


def locked_out(
    request: HttpRequest,
    response: HttpResponse | None = None,
    credentials: object = None,
) -> HttpResponse:
    """429 after too many wrong passwords for this name from this address."""
    minutes = round(settings.AXES_COOLOFF_TIME * 60)
    detail = (
        "Too many sign-ins with this username failed from your address. "
        f"Try again in {minutes} minutes."
    )
    answer = problems.render_error_page(request, 429, "throttle", detail)
    answer["Retry-After"] = str(minutes * 60)
    return answer


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403 for a form whose token is missing or of another session, usually because the
    person signed out or signed in again."""
    signed_in = request.user.is_authenticated
    if reason.startswith(("Origin checking failed", "Referer checking failed")):
        origin = request.headers.get("Origin") or request.headers.get("Referer", "")
        seen = f"{request.scheme}://{request.get_host()}"
        detail = (
            f"The browser sent this form from {origin}, and the proxy in front of"
            f" Counterseal says that the address is {seen}. Nothing was recorded. Open"
            f" {settings.COUNTERSEAL.base_url}. If you did, the proxy must send the"
            " header Host as the browser sent it, with its port."
        )
        return _render_error(
            request, 403, "session", detail, title="This page has another address"
        )
    detail = (
        "This form does not belong to your current session. Nothing was recorded. Open "
        "the page again and try again."
        if signed_in
        else "You are not signed in. Nothing was recorded. Sign in and try again."
    )
    return _render_error(
        request,
        403,
        "session",
        detail,
        title="Your session changed",
        signs_in=not signed_in,
    )


def refuse_cross_site(request: HttpRequest) -> HttpResponse:
    """403 for a request that another site made the browser send."""
    detail = "This form came from another site. Nothing was done. Use this page."
    return _render_error(request, 403, "session", detail)


class UnreadableForm(SuspiciousOperation):
    """A form whose encoding or characters cannot be read; its text says which."""


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400 for a request that Django could not read, with the cause."""
    if isinstance(exception, DisallowedHost):
        return _refuse_host(request)
    detail = f"{_describe_unreadable(request, exception)} Nothing was done."
    return _render_error(request, 400, "bad_request", detail)


def _refuse_host(request: HttpRequest) -> HttpResponse:
    """400 in one line, and one line in the log: who asks a process by its address is
    often a load balancer, which reads no page."""
    host = str(request.META.get("HTTP_HOST", ""))
    if not hasattr(request, "request_id"):  # refused above what logs each request
        log.info("host.unknown", host=host, path=request.path)
    detail = (
        f"This gate answers at {settings.COUNTERSEAL.base_url}. By another address it"
        " answers /livez, /readyz and /metrics alone.\n"
    )
    return HttpResponse(detail, status=400, content_type="text/plain; charset=utf-8")


def _describe_unreadable(request: HttpRequest, exception: Exception) -> str:
    if isinstance(exception, UnreadableForm):
        return f"The form could not be read. {exception} Change it and send it again."
    if isinstance(exception, TooManyFieldsSent):
        most = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        return (
            f"The form has more than {most:,} fields. Send it in parts or by the API."
        )
    if isinstance(exception, RequestDataTooBig | TooManyFilesSent):
        return "The form is too large. Shorten its texts and send it again."
    if isinstance(exception, MultiPartParserError | BadRequest):
        return "The form is malformed. Open the page again and fill it in again."
    return "The address of the request could not be read. Check the address."


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403 for a PermissionDenied of Django's."""
    detail = "You do not have permission for this. Nothing was done."
    return _render_error(request, 403, "not_yours", detail)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404 for an unknown address or an object that this person may not see."""
    detail = "Page not found, or you do not have access."
    shorter = request.path.rstrip("/")
    if request.path.startswith(problems.JSON_PATHS) and _is_address(shorter):
        detail = f"The addresses of the API have no slash at their end: use {shorter}."
    return _render_error(request, 404, "not_found", detail)


def _is_address(path: str) -> bool:
    try:
        resolve(path)
    except Resolver404:
        return False
    return True


def refuse_method(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """405 as problem details for the API; other answers of 405 stay as they are."""
    if not request.path.startswith(problems.JSON_PATHS):
        return response
    methods = set(response.headers.get("Allow", "").replace(" ", "").split(","))
    methods |= {"HEAD"} if "GET" in methods else set()
    allowed = ", ".join(sorted(methods - {""}))
    detail = (
        f"{request.method} is not allowed here. Nothing was done. "
        f"{f'Use {allowed}.' if allowed else ''}"
    ).strip()
    answer = problems.build_program_error(
        request.path, 405, "method_not_allowed", detail
    )
    answer["Allow"] = allowed
    return answer


def server_error(request: HttpRequest) -> HttpResponse:
    """500 for an error of ours; 503 while the database is away, which a middleware may
    notice, too. The reference is the request id in the log."""
    if problems.is_database_away(sys.exc_info()[1]):
        return problems.render_unavailable(request)
    reference = getattr(request, "request_id", "")
    detail = (
        "Something failed on our side. Your change may not have been recorded: check "
        f"before you send it again. Reference {reference}."
    )
    return _render_error(request, 500, "server", detail)


def _render_error(
    request: HttpRequest, status: int, code: str, detail: str, **page: Any
) -> HttpResponse:
    if request.path.startswith(problems.JSON_PATHS):
        return problems.build_program_error(request.path, status, code, detail)
    return problems.render_error_page(request, status, code, detail, **page)

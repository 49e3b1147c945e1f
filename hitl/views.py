"""Health checks, and the error views that Django and its middleware call."""

from __future__ import annotations

from typing import Any

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import (
    BadRequest,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.urls import Resolver404, resolve
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from journal import restore_epochs
from reviews import standstills

from . import connections, disk, problems


@login_not_required
@require_safe
@never_cache
def livez(request: HttpRequest) -> HttpResponse:
    """Whether this process answers. Ignores the database and the broker, so that an
    outage of either does not get every web process killed."""
    return JsonResponse({"status": "ok"})


@login_not_required
@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """Whether this process can do its work: 200, or 503 and what is missing."""
    services = {
        "database": _describe_database(),
        "disk": disk.describe_disk(),
        "broker": _describe_broker(),
    }
    ready = all(text == "ok" for text in services.values())
    worker = {
        "effects": _describe_effects(),
        "sweeps": _describe_sweeps(),
        "log": _describe_log(),
    }
    body = {"status": "ok" if ready else "unavailable", **services, **worker}
    # Still 200: the pages work, and they tell people what to do.
    if ready and any(text != "ok" for text in worker.values()):
        body["status"] = "standstill"
    if ready and restore_epochs.find_halt_reason():
        body["status"] = "restored"
    return JsonResponse(body, status=200 if ready else 503)


def _describe_database() -> str:
    try:
        executor = MigrationExecutor(connection)
        unapplied = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return "unreachable"
    return "migrations are not applied" if unapplied else "ok"


def _describe_broker() -> str:
    client = redis.Redis.from_url(
        settings.COUNTERSEAL.redis_url,
        socket_connect_timeout=connections.BROKER_CONNECT_TIMEOUT_S,
        socket_timeout=connections.BROKER_CONNECT_TIMEOUT_S,
    )
    try:
        client.ping()
    except redis.RedisError:
        return "unreachable"
    finally:
        client.close()
    return "ok"


def _describe_effects() -> str:
    seconds = standstills.known.effects
    return f"none was claimed for {seconds:.0f} s" if seconds else "ok"


def _describe_sweeps() -> str:
    late = standstills.known.sweeps
    return f"late: {', '.join(late)}" if late else "ok"


def _describe_log() -> str:
    """The session that holds the log back is not named: anybody may read this."""
    delay = standstills.known.log
    if delay is None:
        return "ok"
    return f"stalled for {delay.seconds:.0f} s: {delay.waiting} records wait"


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
    detail = f"{_describe_unreadable(request, exception)} Nothing was done."
    return _render_error(request, 400, "bad_request", detail)


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
    answer = problems.build_problem(405, "method_not_allowed", detail)
    answer["Allow"] = allowed
    return answer


def server_error(request: HttpRequest) -> HttpResponse:
    """500 for an error of ours. The reference is the request id in the log."""
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
        return problems.build_problem(status, code, detail)
    return problems.render_error_page(request, status, code, detail, **page)

"""What every request gets: an id that all its log lines carry, and refusals rendered
in one place, so that no view catches a domain error."""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import structlog
from django.core.exceptions import SuspiciousOperation
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject
from psycopg.errors import LockNotAvailable
from structlog.contextvars import bind_contextvars, clear_contextvars

from agents.models import AgentKey
from journal.errors import Conflict, DomainError
from policies.models import Person

from . import problems, views

GetResponse = Callable[[HttpRequest], HttpResponse]
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
log = structlog.get_logger("hitl.request")


class RequestContext:
    """Names the request for the log and writes its one line.

    The id is ours: one sent by the client could be made to collide or to forge lines.
    The path is logged, the query is not: it may hold what people searched for.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        clear_contextvars()  # the thread served somebody else before
        request_id = uuid4().hex
        request.request_id = request_id  # type: ignore[attr-defined]
        bind_contextvars(request_id=request_id)
        start = time.monotonic()
        response = self.get_response(request)
        response["X-Request-Id"] = request_id
        if caller := _caller(request, response):
            response["Holdpoint-Caller"] = (
                caller  # to hitl.live.callers, and no further
            )
        log.info(
            "request",
            method=request.method,
            path=request.path,
            status=response.status_code,
            ms=round((time.monotonic() - start) * 1000, 1),
        )
        return response


def _caller(request: HttpRequest, response: HttpResponse) -> str:
    """Who was let in, by a key, a token or a session, or that nobody was; empty where
    nobody looked. Nothing is asked for it: a session that was not read stays so."""
    said = vars(request)
    found = said.get("auth") or said.get("user")
    if isinstance(found, SimpleLazyObject):
        found = said.get("_cached_user")
    if isinstance(found, AgentKey):
        return f"agent:{found.agent.slug}"
    if isinstance(found, Person):
        return f"person:{found.public_id}"
    refused = response.status_code == HTTPStatus.UNAUTHORIZED
    return "nobody" if refused or found is not None else ""


class Boundary:
    """What may not come in, and what no cache may keep.

    A browser says which site made it send: what another site sends is refused even
    where its token would be right (ASVS 5.0, 3.5.8). No name holds U+0000, and
    PostgreSQL could not be asked about one. Every answer is somebody's alone.
    """

    OWN = frozenset({"same-origin", "none"})

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response

    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponse | None:
        if "\0" in request.path or "%00" in request.META["QUERY_STRING"]:
            return views.bad_request(request, SuspiciousOperation())
        sender = request.headers.get("Sec-Fetch-Site", "none")
        if request.method not in SAFE and sender not in self.OWN:
            return views.from_elsewhere(request)
        return None


class DomainErrors:
    """Renders a DomainError as page, notice or problem; leaves all else alone.

    A lock that was waited for longer than `lock_timeout` is a Conflict: nothing was
    done and asking again may succeed.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponse | None:
        if is_lock_timeout(exception):
            exception = Conflict()
        if not isinstance(exception, DomainError):
            return None
        log.info("refused", code=exception.code, detail=exception.detail)
        return problems.refusal(request, exception)


def is_lock_timeout(exception: Exception) -> bool:
    return isinstance(exception, OperationalError) and isinstance(
        exception.__cause__, LockNotAvailable
    )

"""Middleware for every request: a request id for the log, protection against cross-site
requests and caches, and the rendering of domain errors."""

from __future__ import annotations

import codecs
import re
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, ClassVar
from uuid import uuid4

import structlog
from csp.constants import HEADER as CONTENT_POLICY
from csp.utils import build_policy
from django.core.exceptions import SuspiciousOperation
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.functional import SimpleLazyObject
from psycopg.errors import DeadlockDetected, LockNotAvailable
from structlog.contextvars import bind_contextvars, clear_contextvars

from agents.models import AgentKey
from desk.components.fresh_sign_in import FormWaits
from journal.errors import Conflict, DomainError
from journal.notify import name_caller
from policies.models import Person, ProvisioningToken

from . import metrics, problems, views
from .health import views as health
from .measurements import EXCHANGE, Exchange

GetResponse = Callable[[HttpRequest], HttpResponse]
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
FORM_TYPES = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
REQUEST_ID_PATTERN = re.compile(r"[\x21-\x7e]{1,128}")
UNKNOWN_ROUTE = "unknown"  # of all addresses that no pattern has
log = structlog.get_logger("hitl.request")


class RequestContext:
    """Gives the request an id, binds it for all log lines, and logs the request.

    The id is generated here: a client could choose one that collides or forges log
    lines. Only the answers of AuthZEN carry the client's own id instead, as it demands.
    The path is logged but not the query, which may hold what people searched for.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        clear_contextvars()  # the thread has served other requests
        request_id = uuid4().hex
        request.request_id = request_id  # type: ignore[attr-defined]
        bind_contextvars(request_id=request_id)
        start = time.monotonic()
        response = self.get_response(request)
        response["X-Request-Id"] = _find_own_request_id(request) or request_id
        if caller := _identify_caller(request, response):
            response["Counterseal-Caller"] = caller  # hitl.live.callers removes it
        _name_route(request)
        log.info(
            "request",
            method=request.method,
            path=request.path,
            status=response.status_code,
            ms=round((time.monotonic() - start) * 1000, 1),
        )
        return response


def _name_route(request: HttpRequest) -> None:
    """Tell hitl.live.request_figures the pattern of the address, never the address.
    Calls that a wait makes itself are part of the first one."""
    exchange: Exchange | None = request.META.get(EXCHANGE)
    if exchange is None or exchange.route:
        return
    if request.resolver_match is not None:
        exchange.route = request.resolver_match.route
    elif request.path in ProbesByAddress.VIEWS:
        exchange.route = request.path[1:]
    else:
        exchange.route = UNKNOWN_ROUTE


def _find_own_request_id(request: HttpRequest) -> str:
    """The id that the client gave a call of AuthZEN (Authorization API 1.0, section
    "Request Identification"); "" for other calls, and for what is no plain text."""
    given = request.headers.get("X-Request-Id", "")
    plain = REQUEST_ID_PATTERN.fullmatch(given)
    return given if plain and request.path.startswith(problems.ACCESS) else ""


def _identify_caller(request: HttpRequest, response: HttpResponse) -> str:
    """The caller that a key, token or session identified: `agent:...`, `person:...`,
    `provider:...`, `nobody` if nobody was, or "" if the view did not check. Reads only
    what is already loaded: a session that no view read stays unread."""
    loaded = vars(request)
    caller = loaded.get("auth") or loaded.get("user")
    if isinstance(caller, SimpleLazyObject):
        caller = loaded.get("_cached_user")
    if isinstance(caller, AgentKey):
        return name_caller("agent", caller.agent.slug)
    if isinstance(caller, ProvisioningToken):
        return name_caller("provider", caller.prefix)
    if isinstance(caller, Person):
        return name_caller("person", caller.public_id)
    refused = response.status_code == HTTPStatus.UNAUTHORIZED
    return "nobody" if refused or caller is not None else ""


class ContentPolicy:
    """Sends the Content-Security-Policy of the settings with every answer.

    The header is built once: no page has an inline script, so none needs a nonce.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        self.policy = build_policy()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault(CONTENT_POLICY, self.policy)
        return response


class Boundary:
    """Refuses cross-site requests and null characters, and forbids caching.

    A browser names the site that caused a request in Sec-Fetch-Site. A request that
    changes something is refused if another site caused it, even with a valid CSRF token
    (ASVS 5.0, 3.5.8). U+0000 and unpaired surrogates occur in no text, and PostgreSQL
    refuses them: an address, a query and a form that have one are refused here, before
    a view reads any of its fields. Every answer is private to its caller.
    """

    OWN = frozenset({"same-origin", "none"})

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            response = views.refuse_method(request, response)
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response

    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponse | None:
        if "\0" in request.path or "%00" in request.META["QUERY_STRING"]:
            return views.bad_request(request, SuspiciousOperation())
        if problem := _find_form_problem(request):
            return views.bad_request(request, views.UnreadableForm(problem))
        sender = request.headers.get("Sec-Fetch-Site", "none")
        if request.method not in SAFE and sender not in self.OWN:
            return views.refuse_cross_site(request)
        return None


class ProbesByAddress:
    """Answers probes and Prometheus before a middleware checks the host name.

    A kubelet, a load balancer and Prometheus ask a process by its address, which
    `ALLOWED_HOSTS` does not have. What these paths answer depends on no host name.
    """

    VIEWS: ClassVar = {
        "/livez": health.livez,
        "/readyz": health.readyz,
        "/metrics": metrics.show_metrics,
    }

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = self.VIEWS.get(request.path, self.get_response)
        return answer(request)


def _find_form_problem(request: HttpRequest) -> str:
    """Why no view may read the form of this request; empty for a usable one, and for a
    request without a form. Raises what Django raises for a form that it cannot parse.

    The encoding that a request names would also decode its query, so it is ignored
    where there is no form.
    """
    foreign = codecs.lookup(request.encoding or "utf-8").name != "utf-8"
    is_form = request.content_type in FORM_TYPES
    if not is_form or request.path.startswith(problems.JSON_PATHS):
        if foreign:
            request.encoding = "utf-8"
        return ""
    if foreign:
        return "A form must be sent in UTF-8."
    files = request.FILES
    sent = [file for _, uploads in files.lists() for file in uploads]
    names = [*request.POST, *files, *(file.name or "" for file in sent)]
    texts = [text for _, values in request.POST.lists() for text in values]
    if any(UNSTORABLE.search(str(text)) for text in (*names, *texts)):
        return "A field has a character that cannot be stored, such as U+0000."
    if any("\r" in str(text) for text in texts):
        request.POST = _normalise_lines(request.POST)  # type: ignore[assignment]
    return ""


def _normalise_lines(sent: QueryDict) -> QueryDict:
    """The form with `\\n` for each end of a line. A browser sends two characters for
    each, and counts one against the length that a field allows."""
    form = sent.copy()
    for name, texts in sent.lists():
        lines = [str(text).replace("\r\n", "\n").replace("\r", "\n") for text in texts]
        form.setlist(name, lines)
    return form


class DomainErrors:
    """Renders a DomainError as a page, a notice or a problem, and leads a person whose
    form waits for a fresh sign-in to it; ignores other errors.

    A wait for a lock that is longer than `lock_timeout`, and a deadlock, become a
    Conflict: nothing was done, and trying again may succeed.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponse | None:
        if has_lost_lock(exception):
            exception = Conflict()
        if problems.is_database_away(exception):
            log.error("database.away", error=str(exception.__cause__ or exception))
            return problems.render_unavailable(request)
        if isinstance(exception, FormWaits):
            return redirect("reviews:confirm_form")
        if not isinstance(exception, DomainError):
            return None
        log.info("refused", code=exception.code, detail=exception.detail)
        return problems.render_refusal(request, exception)


def has_lost_lock(exception: Exception) -> bool:
    """Whether the database gave up waiting for a lock, or ended the transaction because
    it and another one waited for each other."""
    return isinstance(exception, OperationalError) and isinstance(
        exception.__cause__, LockNotAvailable | DeadlockDetected
    )

"""Recognises a proxy that ends TLS and does not say so.

Django redirects plain http to https. Where the proxy hides that the browser used https
already, the browser would be redirected to the address that it is at, for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from . import problems
from .base_url import IGNORED, MISSING, PLAIN

GetResponse = Callable[[HttpRequest], HttpResponse]
log = structlog.get_logger(__name__)


class ProxyHeaders:
    """Answers a request whose redirect to https would lead to itself with the header
    that is missing, and logs each fault once."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        self.logged = set[str]()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = self.get_response(request)
        if request.is_secure() or answer.status_code != HTTPStatus.MOVED_PERMANENTLY:
            return answer
        if not (fault := find_fault(request)):
            return answer
        if fault not in self.logged:
            self.logged.add(fault)
            proxy = request.META.get("REMOTE_ADDR", "")
            log.error("proxy.headers", fault=fault, address=proxy)
        return build_answer(request, fault)


def find_fault(request: HttpRequest) -> str:
    """What is wrong with the headers of a request that seems to have come by http; ""
    where it may have."""
    scheme = request.headers.get("X-Forwarded-Proto", "")
    if scheme.strip().lower() == "https":
        return IGNORED
    # Browsers send it to https addresses and to their own machine alone.
    if "Sec-Fetch-Site" in request.headers and not settings.COUNTERSEAL.loopback:
        return PLAIN if scheme else MISSING
    names = {settings.COUNTERSEAL.hostname, *settings.COUNTERSEAL.allowed_hosts}
    host = urlsplit(f"//{request.headers.get('Host', '')}").hostname
    return MISSING if host in names and not scheme else ""


def build_answer(request: HttpRequest, fault: str) -> HttpResponse:
    """Problem details for a program, and plain text for a browser. Nothing was done."""
    detail = f"{fault} docs/operations.md, section Proxy, has the whole list."
    if request.path.startswith(problems.JSON_PATHS):
        return problems.build_program_error(request.path, 500, "server", detail)
    answer = HttpResponse(f"{detail}\n", "text/plain; charset=utf-8", status=500)
    answer["Cache-Control"] = "no-store"
    return answer

"""Counts each request and its time, as the client sees them: with the wait for a thread
and with the refusals that Django never sees."""

from __future__ import annotations

import time
from functools import cache

from django.conf import settings

from hitl.measurements import EXCHANGE, Exchange, Measurements

from .buffering import App, Message, Receive, Scope, Send

METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
PROBES = frozenset({"livez", "readyz", "metrics"})
STATIC = "static"
# Answered before the address was looked up: a refusal by a limit, or a redirect to TLS.
UNROUTED = "unrouted"
NO_ANSWER = 499  # the client has gone first, as nginx logs it


class RequestFigures:
    """ASGI middleware around all others."""

    def __init__(self, app: App, measurements: Measurements) -> None:
        self.app, self.measurements = app, measurements

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange, began = Exchange(), time.perf_counter()
        scope[EXCHANGE] = exchange

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.code = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watch)
        except Exception:
            exchange.code = exchange.code or 500
            raise
        finally:
            self._record(scope, exchange, time.perf_counter() - began)

    def _record(self, scope: Scope, exchange: Exchange, seconds: float) -> None:
        route = exchange.route or _name_unrouted(scope["path"])
        method = scope["method"] if scope["method"] in METHODS else "other"
        status = exchange.code or NO_ANSWER
        self.measurements.count("http_requests", method, route, str(status))
        if exchange.code and not exchange.waits:
            group = find_group(route)
            self.measurements.observe("http_request_seconds", seconds, group)


def mark_waiting(scope: Scope) -> None:
    """Leave the time of this request out: it waits for something to happen."""
    if exchange := scope.get(EXCHANGE):
        exchange.waits = True


@cache
def find_group(route: str) -> str:
    """The part of the gate that a route belongs to."""
    if route in PROBES:
        return "probes"
    if route in {STATIC, UNROUTED}:
        return route
    return "api" if route.startswith(("api/", "access/")) else "pages"


def _name_unrouted(path: str) -> str:
    return STATIC if path.startswith(settings.STATIC_URL) else UNROUTED

"""The middleware for people at pages, which a program's call of the API passes.

A program names itself in the Authorization header, so it needs no session and nothing
of a page. A page's own call of the API has the session's cookie instead, and is served
like a page.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.middleware import (
    AuthenticationMiddleware,
    LoginRequiredMiddleware,
)
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django_htmx.middleware import HtmxMiddleware

from desk.account.zones import ReadersZone

from .middleware import Boundary
from .problems import JSON_PATHS

PAGE_TYPE = "text/html"


def is_program_call(request: HttpRequest) -> bool:
    """Whether a program calls the API with a key or a token, valid or not."""
    return "HTTP_AUTHORIZATION" in request.META and request.path_info.startswith(
        JSON_PATHS
    )


class PagesOnly:
    """Mixin for a middleware that a program's call of the API passes."""

    get_response: Callable[[HttpRequest], Any]

    def __call__(self, request: HttpRequest) -> Any:
        if is_program_call(request):
            return self.get_response(request)
        return super().__call__(request)  # type: ignore[misc]


class Compression(PagesOnly, GZipMiddleware):
    """Compresses pages, and no other answer: an event stream grows, a download may be
    large, and an answer of the API is small or may be replaced while a client waits.

    The length of a compressed page can tell an eavesdropper which guess of a secret the
    page repeats (BREACH). For that the eavesdropper must make the browser request the
    page, so a page that another site caused is not compressed. Django also adds up to
    100 random bytes to each.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        is_page = response.headers.get("Content-Type", "").startswith(PAGE_TYPE)
        sender = request.headers.get("Sec-Fetch-Site", "none")
        if not is_page or sender not in Boundary.OWN:
            return response
        return super().process_response(request, response)


class Sessions(PagesOnly, SessionMiddleware):
    """Loads the session when a view first reads it, and saves it."""


class Authentication(PagesOnly, AuthenticationMiddleware):
    """Sets `request.user`, which a program's call does not have."""


class LoginRequired(LoginRequiredMiddleware):
    """Sends callers who are not signed in to the sign-in page. A program's call is not
    signed in, so it gets there from every view that requires it."""

    def process_view(
        self, request: HttpRequest, view_func: Any, *given: Any
    ) -> HttpResponseBase | None:
        if not is_program_call(request):
            return super().process_view(request, view_func, *given)
        if getattr(view_func, "login_required", True):
            return self.handle_no_permission(request, view_func)
        return None


class Zones(PagesOnly, ReadersZone):
    """Prints times in the reader's time zone."""


class Messages(PagesOnly, MessageMiddleware):
    """Keeps messages for the next page in the session."""


class Htmx(PagesOnly, HtmxMiddleware):
    """Sets `request.htmx`."""

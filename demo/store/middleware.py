"""The headers of every answer: the pages load one stylesheet and nothing else."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

Respond = Callable[[HttpRequest], HttpResponse]

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'none'; form-action 'none';"
    " base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def headers(respond: Respond) -> Respond:
    """Add the headers, and keep pages out of caches unless they say otherwise."""

    def middleware(request: HttpRequest) -> HttpResponse:
        request.get_host()  # refuses a name that was rebound to our address
        response = respond(request)
        for name, value in HEADERS.items():
            response.headers[name] = value
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware

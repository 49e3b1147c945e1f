"""What views need for htmx: which part of a page was requested, and caching headers."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from journal.errors import DomainError

STOP_POLLING = 286  # htmx swaps the response and stops polling
_Args = ParamSpec("_Args")


def wants_partial(request: HttpRequest) -> bool:
    """Whether htmx requests a part of the page: not boosted, not a history restore."""
    htmx: Any = getattr(request, "htmx", None)
    return bool(htmx) and not (htmx.boosted or htmx.history_restore_request)


def choose_template(request: HttpRequest, template: str, name: str) -> str:
    """`page.html#name` for htmx, the whole template otherwise."""
    return f"{template}#{name}" if wants_partial(request) else template


def vary_on_htmx(
    view: Callable[Concatenate[HttpRequest, _Args], HttpResponse],
) -> Callable[Concatenate[HttpRequest, _Args], HttpResponse]:
    """Mark responses that differ for htmx, so that caches do not mix the two."""

    @wraps(view)
    def wrapped(
        request: HttpRequest, /, *args: _Args.args, **kwargs: _Args.kwargs
    ) -> HttpResponse:
        response = view(request, *args, **kwargs)
        patch_vary_headers(response, ["HX-Request"])
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return wrapped


def render_fragment(
    request: HttpRequest,
    template: str,
    context: dict[str, Any],
    *,
    etag: str,
    settled: bool = False,
) -> HttpResponse:
    """Render a polled fragment: 204 while its `etag` is unchanged, 286 (htmx stops
    polling) once it is `settled`."""
    quoted = f'"{etag}"'
    if request.headers.get("If-None-Match") in {etag, quoted} and not settled:
        return HttpResponse(status=204)
    status = STOP_POLLING if settled else 200
    response = render(request, template, context, status=status)
    response["ETag"] = quoted
    return response


def parse_query(address: str) -> QueryDict:
    """The query of an address that a script remembered, with or without its `?`; at
    most 1000 characters are read."""
    return QueryDict(address.removeprefix("?")[:1000])


def catch_refusal(operation: Callable[[], object]) -> DomainError | None:
    """Run an operation and return its refusal, for pages that show it in place and keep
    the typed text."""
    try:
        operation()
    except DomainError as error:
        return error
    return None


def compute_form_status(error: DomainError | None, *, sent: bool) -> int:
    """The status of a page with a form: 200 for a read; for a form that was `sent` the
    refusal's own status, or 422 for invalid input."""
    if error is not None:
        return error.status
    return 422 if sent else 200


def read_shown_asked(request: HttpRequest) -> bool | None:
    """Whether the page of a form said that a first person asked already, and this one
    is the second; None for a form that does not say it."""
    return {"1": True, "0": False}.get(request.POST.get("asked", ""))

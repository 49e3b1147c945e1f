"""The little that htmx needs from a view: which part was asked for, and what varies."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from journal.errors import DomainError

STOP_POLLING = 286  # htmx: swap this and ask no more
_Args = ParamSpec("_Args")


def wants_partial(request: HttpRequest) -> bool:
    """htmx asks for a part of the page: not boosted, not a history restore."""
    htmx: Any = getattr(request, "htmx", None)
    return bool(htmx) and not (htmx.boosted or htmx.history_restore_request)


def part(request: HttpRequest, template: str, name: str) -> str:
    """`page.html#name` for htmx, the whole page for everybody else."""
    return f"{template}#{name}" if wants_partial(request) else template


def varies(
    view: Callable[Concatenate[HttpRequest, _Args], HttpResponse],
) -> Callable[Concatenate[HttpRequest, _Args], HttpResponse]:
    """Marks an answer that differs for htmx, so that no cache mixes the two."""

    @wraps(view)
    def wrapped(
        request: HttpRequest, /, *args: _Args.args, **kwargs: _Args.kwargs
    ) -> HttpResponse:
        response = view(request, *args, **kwargs)
        patch_vary_headers(response, ["HX-Request"])
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return wrapped


def fragment(
    request: HttpRequest,
    template: str,
    context: dict[str, Any],
    *,
    etag: str,
    settled: bool = False,
) -> HttpResponse:
    """A polled fragment: 204 while unchanged, 286 once nothing more can change."""
    quoted = f'"{etag}"'
    if request.headers.get("If-None-Match") in {etag, quoted} and not settled:
        return HttpResponse(status=204)
    status = STOP_POLLING if settled else 200
    response = render(request, template, context, status=status)
    response["ETag"] = quoted
    return response


def query(address: str) -> QueryDict:
    """The query of an address that a script remembered: `?tab=open` or without `?`."""
    return QueryDict(address.removeprefix("?")[:1000])


def attempt(operation: Callable[[], object]) -> DomainError | None:
    """Runs an operation whose refusal a page shows in place, typed text kept."""
    try:
        operation()
    except DomainError as error:
        return error
    return None


def status_of(error: DomainError | None, *, sent: bool) -> int:
    """Of a page with a form: 200 as it is read; of one that was `sent` and is shown
    once more what the operation's refusal says, or 422 for what cannot be read."""
    if error is not None:
        return error.status
    return 422 if sent else 200

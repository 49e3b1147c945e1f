"""Query parameters of people's calls: an unknown name is refused, because a mistyped
filter would return a longer list than the caller expects."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse

from journal.errors import InvalidInput, build_field_error

BODY = "body"  # argument name of the JSON body in every endpoint

Endpoint = Callable[..., HttpResponse]


def reject_unknown_parameters(call: Endpoint) -> Endpoint:
    """Wrap an endpoint so that it raises Invalid for an unknown query parameter."""

    @wraps(call)
    def checked(request: HttpRequest, **values: Any) -> HttpResponse:
        path = request.resolver_match.kwargs if request.resolver_match else {}
        known = [name for name in values if name not in path and name != BODY]
        unknown = sorted(request.GET.keys() - set(known))
        if unknown:
            takes = f"allowed are {', '.join(known)}" if known else "it takes none"
            message = f"not a query parameter of this call; {takes}"
            raise InvalidInput(
                errors=[build_field_error(name[:64], message) for name in unknown[:20]]
            )
        return call(request, **values)

    return checked

"""Query parameters of people's calls: a name that no call knows is refused, or a list
would be longer than its caller believes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse

from journal.errors import Invalid, at

BODY = "body"  # what every call names its JSON

Call = Callable[..., HttpResponse]


def only_known(call: Call) -> Call:
    """The same call; it raises Invalid for a parameter that it does not take."""

    @wraps(call)
    def checked(request: HttpRequest, **values: Any) -> HttpResponse:
        path = request.resolver_match.kwargs if request.resolver_match else {}
        known = [name for name in values if name not in path and name != BODY]
        unknown = sorted(request.GET.keys() - set(known))
        if unknown:
            takes = f"allowed are {', '.join(known)}" if known else "it takes none"
            message = f"not a query parameter of this call; {takes}"
            raise Invalid(errors=[at(name[:64], message) for name in unknown[:20]])
        return call(request, **values)

    return checked

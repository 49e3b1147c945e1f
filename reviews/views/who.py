"""The person behind a request, as the type that operations take."""

from __future__ import annotations

from django.http import HttpRequest

from policies.models import Person


def person(request: HttpRequest) -> Person:
    """Who signed in; LoginRequiredMiddleware let nobody else through."""
    assert isinstance(request.user, Person)
    return request.user

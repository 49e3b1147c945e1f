"""A URL conf whose views do what goes wrong."""

from __future__ import annotations

from typing import NoReturn

import psycopg
from django.contrib.auth.decorators import login_not_required
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.urls import path

from hitl import urls
from hitl.urls import handler400, handler403, handler404, handler500
from journal.errors import AgentRateLimited, StaleVersion, build_field_error

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]


@login_not_required
def stale(request: HttpRequest) -> NoReturn:
    raise StaleVersion(errors=[build_field_error("version", "is 2 now")])


@login_not_required
def too_many(request: HttpRequest) -> NoReturn:
    raise AgentRateLimited(retry_after=7)


@login_not_required
def broken(request: HttpRequest) -> NoReturn:
    raise ZeroDivisionError("secret value")


@login_not_required
def away(request: HttpRequest) -> NoReturn:
    raise OperationalError("server at db.internal is not there") from psycopg.Error()


@login_not_required
def fine(request: HttpRequest) -> HttpResponse:
    return HttpResponse("fine")


urlpatterns = [
    *(
        path(f"{prefix}{view.__name__}", view)
        for prefix in ("", "api/v1/")
        for view in (stale, too_many, broken, away, fine)
    ),
    *urls.urlpatterns,
]

"""The product's addresses, and some at which every kind of refusal can be met."""

from __future__ import annotations

from typing import NoReturn

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest
from django.urls import path

from hitl import urls
from hitl.urls import handler400, handler403, handler404, handler500
from journal import errors

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]
RAISED: dict[str, Exception] = {
    "stale": errors.StaleVersion(),
    "expired": errors.RequestExpired(),
    "invalid": errors.InvalidInput(
        errors=[errors.build_field_error("days", "from 1 to 365")]
    ),
    "throttle": errors.ReviewerRateLimited(retry_after=60),
    "server": ZeroDivisionError(),
}


@login_not_required
def error(request: HttpRequest, name: str) -> NoReturn:
    raise RAISED[name]


urlpatterns = [path("raise/<str:name>/", error, name="error"), *urls.urlpatterns]

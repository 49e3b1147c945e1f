"""The address at which enforcement points find the AuthZEN endpoints."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from agents.adapters.authzen import metadata

CACHE_S = 300


@login_not_required
@require_safe
@cache_control(public=True, max_age=CACHE_S)
def authzen_metadata(request: HttpRequest) -> HttpResponse:
    """The metadata of the policy decision point. Public."""
    return JsonResponse(metadata.build_metadata())

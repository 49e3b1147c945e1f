"""The metadata of the policy decision point (Authorization API 1.0, section "Policy
Decision Point Metadata"): where enforcement points find the endpoints."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

CACHE_S = 300


@login_not_required
@require_safe
@cache_control(public=True, max_age=CACHE_S)
def show_metadata(request: HttpRequest) -> HttpResponse:
    """The document of `/.well-known/authzen-configuration`. Public."""
    return JsonResponse(build_metadata())


def build_metadata() -> dict[str, Any]:
    here = settings.COUNTERSEAL.base_url
    return {
        "policy_decision_point": here,
        "access_evaluation_endpoint": f"{here}/access/v1/evaluation",
        "access_request_endpoint": f"{here}/access/v1/requests",
        "jwks_uri": f"{here}/.well-known/jwks.json",
        "capabilities": ["urn:openid:authzen:capability:access-request"],
        "supported_obligations": ["custom"],
    }

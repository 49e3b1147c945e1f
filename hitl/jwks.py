"""The public keys of grants, for services that verify grants themselves."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from reviews.grants import tokens

# Seconds a service may cache the keys. A new key is published longer than this before
# it signs.
CACHE_S = 300


@login_not_required
@require_safe
@cache_control(public=True, max_age=CACHE_S)
def jwks(request: HttpRequest) -> HttpResponse:
    """The public keys as a JWK set (RFC 7517). Public."""
    kind = "application/jwk-set+json"
    return JsonResponse(tokens.build_jwk_set(), content_type=kind)

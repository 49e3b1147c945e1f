"""The public keys of grants, for services that verify them by themselves."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from reviews.grants import tokens

# How long a service may keep them: a new key is published for longer before it signs.
FRESH_S = 300


@login_not_required
@require_safe
@cache_control(public=True, max_age=FRESH_S)
def jwks(request: HttpRequest) -> HttpResponse:
    """A JWK set (RFC 7517), for everybody."""
    kind = "application/jwk-set+json"
    return JsonResponse(tokens.published(), content_type=kind)

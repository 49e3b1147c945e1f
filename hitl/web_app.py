"""The manifest with which a phone adds Counterseal to its home screen. Without one, iOS
lets no site show push messages."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.templatetags.static import static
from django.urls import reverse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

CACHE_S = 3600
ICON_SIZES = (192, 512)  # pixels; the files are static/app-<size>.png


@login_not_required
@require_safe
@cache_control(public=True, max_age=CACHE_S)
def show_manifest(request: HttpRequest) -> HttpResponse:
    """The web application manifest (W3C). Public: it has nothing of the gate."""
    manifest = {
        "id": "/",
        "name": "Counterseal",
        "short_name": "Counterseal",
        "start_url": reverse("reviews:queue"),
        "scope": "/",
        "display": "standalone",
        "background_color": "#ffffff",
        "theme_color": "#ffffff",
        "icons": [
            {
                "src": static(f"app-{size}.png"),
                "sizes": f"{size}x{size}",
                "type": "image/png",
                "purpose": purpose,
            }
            for size in ICON_SIZES
            for purpose in ("any", "maskable")
        ],
    }
    return JsonResponse(manifest, content_type="application/manifest+json")

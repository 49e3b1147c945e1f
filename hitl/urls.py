"""The root URL configuration; each package owns its own addresses."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from agents.adapters import authzen

from . import api, docs, jwks, metrics, views, web_app

handler400 = views.bad_request
handler403 = views.forbidden
handler404 = views.not_found
handler500 = views.server_error

urlpatterns = [
    path("livez", views.livez, name="livez"),
    path("readyz", views.readyz, name="readyz"),
    path("metrics", metrics.show_metrics, name="metrics"),
    path("manifest.webmanifest", web_app.show_manifest, name="manifest"),
    path(".well-known/jwks.json", jwks.jwks, name="jwks"),
    path(
        ".well-known/authzen-configuration",
        authzen.metadata.show_metadata,
        name="authzen_metadata",
    ),
    path("admin/", admin.site.urls),
    path("api/v1/docs", docs.docs, name="docs"),
    path("", include((api.build_routes(), "api"))),
    path("", include("desk.policies.urls")),
    path("", include("desk.agents.urls")),
    path("", include("desk.urls")),
]

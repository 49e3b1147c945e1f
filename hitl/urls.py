"""The root URL configuration; each package owns its own addresses."""

from __future__ import annotations

from django.urls import include, path

from agents.adapters import authzen

from . import api, client_page, docs, jwks, metrics, views, web_app
from .health import views as health

handler400 = views.bad_request
handler403 = views.forbidden
handler404 = views.not_found
handler500 = views.server_error

urlpatterns = [
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("health/", health.health, name="health"),
    path("channels/", health.channels, name="channels"),
    path("metrics", metrics.show_metrics, name="metrics"),
    path("manifest.webmanifest", web_app.show_manifest, name="manifest"),
    path(".well-known/jwks.json", jwks.jwks, name="jwks"),
    path(
        ".well-known/authzen-configuration",
        authzen.metadata.show_metadata,
        name="authzen_metadata",
    ),
    path("client/", client_page.client, name="client"),
    path("client/<str:name>", client_page.download_wheel, name="client_wheel"),
    path("api/v1/docs", docs.docs, name="docs"),
    path("", include((api.build_routes(), "api"))),
    path("scim/v2/", include("desk.scim.urls")),
    path("", include("desk.policies.urls")),
    path("", include("desk.agents.urls")),
    path("", include("desk.urls")),
]

"""Addresses for tests/hitl/test_page_middleware.py, in the place of the API's."""

from __future__ import annotations

from django.urls import path

from tests.hitl import test_page_middleware as views

urlpatterns = [
    path("api/v1/shown", views.show_request),
    path("api/v1/guarded", views.guarded),
]

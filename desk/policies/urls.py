"""URLs of the policy pages."""

from __future__ import annotations

from django.urls import path

from . import views

app_name = "policies"

urlpatterns = [
    path("tools/", views.tools, name="tools"),
    path("policies/", views.policies, name="policies"),
    path("policies/new/", views.new_policy, name="new_policy"),
    path("policies/new/check/", views.check_draft, name="check_draft"),
    path("policies/<int:number>/", views.policy, name="policy"),
    path("policies/<int:number>/waiting/", views.waiting_requests, name="waiting"),
    path("policies/<int:number>/activate/", views.activate, name="activate"),
    path("policies/<int:number>/refuse/", views.refuse, name="refuse"),
    path("policies/<int:number>/restore/", views.restore, name="restore"),
]

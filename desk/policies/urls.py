"""URLs of the policy pages."""

from __future__ import annotations

from django.urls import path

from . import views

app_name = "policies"

urlpatterns = [
    path("policies/", views.policies, name="policies"),
    path("policies/new/", views.new_policy, name="new_policy"),
    path("policies/<int:number>/", views.policy, name="policy"),
    path("policies/<int:number>/activate/", views.activate, name="activate"),
]

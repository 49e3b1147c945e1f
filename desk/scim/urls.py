"""The addresses of SCIM, below /scim/v2/."""

from __future__ import annotations

from django.urls import path

from . import views

app_name = "scim"

urlpatterns = [
    path("ServiceProviderConfig", views.service_config, name="service_config"),
    path("ResourceTypes", views.resource_types, name="resource_types"),
    path("ResourceTypes/<str:name>", views.resource_type, name="resource_type"),
    path("Schemas", views.schemas, name="schemas"),
    path("Schemas/<str:name>", views.schema, name="schema"),
    path("Users", views.users, name="users"),
    path("Users/<str:public_id>", views.user, name="user"),
    path("Groups", views.groups, name="groups"),
    path("Groups/<str:public_id>", views.group, name="group"),
]

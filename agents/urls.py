"""The addresses of agents and their runs."""

from __future__ import annotations

from django.urls import path

from . import views

app_name = "agents"

urlpatterns = [
    path("agents/", views.agents, name="agents"),
    path("agents/<str:slug>/", views.agent, name="agent"),
    path("agents/<str:slug>/stop/", views.stop_agent, name="stop_agent"),
    path("threads/<str:slug>/<str:name>/", views.thread, name="thread"),
    path("threads/<str:slug>/<str:name>/stop/", views.stop_thread, name="stop_thread"),
]

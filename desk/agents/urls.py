"""URLs of the agents' pages: agents, runs, deliveries, reversals and repairs."""

from __future__ import annotations

from django.urls import path

from . import repair_views, views

app_name = "agents"

urlpatterns = [
    path("agents/", views.agents, name="agents"),
    path("agents/<str:slug>/", views.agent, name="agent"),
    path("agents/<str:slug>/stop/", views.stop_agent, name="stop_agent"),
    path("agents/<str:slug>/endpoints/", views.endpoints, name="endpoints"),
    path("deliveries/", views.deliveries, name="deliveries"),
    path("deliveries/<str:pk>/", views.delivery, name="delivery"),
    path("deliveries/<str:pk>/again/", views.delivery_again, name="delivery_again"),
    path("endpoints/<str:pk>/again/", views.endpoint_again, name="endpoint_again"),
    path("endpoints/<str:pk>/secret/", views.endpoint_secret, name="endpoint_secret"),
    path("endpoints/<str:pk>/switch/", views.endpoint_switch, name="endpoint_switch"),
    path("threads/<str:slug>/<str:name>/", views.thread, name="thread"),
    path("reversals/<str:pk>/", repair_views.reversal, name="reversal"),
    path("repairs/", repair_views.repairs, name="repairs"),
    path("repairs/<str:pk>/", repair_views.repair, name="repair"),
    path(
        "threads/<str:slug>/<str:name>/repair/",
        repair_views.repair_run,
        name="repair_run",
    ),
    path("threads/<str:slug>/<str:name>/stop/", views.stop_thread, name="stop_thread"),
]

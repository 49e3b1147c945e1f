"""URLs of the agents' pages: agents, runs, deliveries, reversals and repairs."""

from __future__ import annotations

from django.urls import path

from . import registration_views, repair_views, setting_views, views

app_name = "agents"

urlpatterns = [
    path("agents/", views.agents, name="agents"),
    path("own-statistics/", views.own_statistics, name="own_statistics"),
    path("runs/", views.runs, name="runs"),
    path("register-agent/", registration_views.register_agent, name="register_agent"),
    path(
        "agents/<str:slug>/settings/",
        setting_views.agent_settings,
        name="agent_settings",
    ),
    path(
        "agents/<str:slug>/changes/<int:pk>/",
        setting_views.settings_change,
        name="settings_change",
    ),
    path("agents/<str:slug>/keys/", registration_views.agent_keys, name="agent_keys"),
    path(
        "agents/<str:slug>/keys/<int:pk>/revoke/",
        registration_views.revoke_key,
        name="revoke_key",
    ),
    path("agents/<str:slug>/", views.agent, name="agent"),
    path("agents/<str:slug>/stop/", views.stop_agent, name="stop_agent"),
    path("agents/<str:slug>/endpoints/", views.endpoints, name="endpoints"),
    path("deliveries/", views.deliveries, name="deliveries"),
    path("deliveries/<str:pk>/", views.delivery, name="delivery"),
    path("deliveries/<str:pk>/again/", views.delivery_again, name="delivery_again"),
    path("endpoints/<str:pk>/again/", views.endpoint_again, name="endpoint_again"),
    path("endpoints/<str:pk>/secret/", views.endpoint_secret, name="endpoint_secret"),
    path("endpoints/<str:pk>/switch/", views.endpoint_switch, name="endpoint_switch"),
    path("endpoints/<str:pk>/test/", views.endpoint_test, name="endpoint_test"),
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

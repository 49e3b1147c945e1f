"""Pages for people, the inbox for Riley, and what the gate calls."""

from __future__ import annotations

from django.urls import path

from . import hooks, pages

handler404 = pages.missing

urlpatterns = [
    path("", pages.home, name="home"),
    path("orders/<str:number>/", pages.order, name="order"),
    path("inbox/", pages.inbox, name="inbox"),
    path("inbox/<str:number>/", pages.message, name="message"),
    path("inbox.json", pages.inbox_json),
    path("inbox/<str:number>.json", pages.message_json),
    path("store.css", pages.style, name="style"),
    path("livez", pages.livez),
    path("effects/<str:tool>", hooks.effect),
    path("readers/<str:tool>", hooks.read),
]

"""The demo as a Django app of Holdpoint: for the one command that seeds it."""

from __future__ import annotations

from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "demo"

from __future__ import annotations

from django.apps import AppConfig


class HitlConfig(AppConfig):
    name = "hitl"

    def ready(self) -> None:
        # Registers the checks; they read settings, so not before the apps are loaded.
        from . import checks  # noqa: F401

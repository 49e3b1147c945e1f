from __future__ import annotations

from django.apps import AppConfig


class HitlConfig(AppConfig):
    name = "hitl"

    def ready(self) -> None:
        # Registers the checks and what a worker does first, and makes our Celery app
        # the one that tasks belong to, in the web process too; they read settings, so
        # not before this point.
        from . import celery, checks, restore_watch  # noqa: F401

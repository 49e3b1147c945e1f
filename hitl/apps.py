from __future__ import annotations

from django.apps import AppConfig


class HitlConfig(AppConfig):
    """The wiring app; `ready` registers checks and Celery signal handlers."""

    name = "hitl"

    def ready(self) -> None:
        # Importing registers the system checks and the worker's start-up handlers, and
        # makes our Celery app the default in the web process too. These modules read
        # settings, so they cannot be imported earlier.
        from . import celery, checks, restore_watch  # noqa: F401

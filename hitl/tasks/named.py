"""Task names that do not depend on the module, so that messages survive a move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery import shared_task


def task(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Register a Celery task as `hitl.tasks.<function>`, whatever its module.

    Outbox rows, the beat schedule and workers of another release use that name.
    `options` go to Celery's `shared_task`.
    """

    def make(function: Callable[..., Any]) -> Any:
        name = f"hitl.tasks.{function.__name__}"
        return shared_task(name=name, **options)(function)

    return make

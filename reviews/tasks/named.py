"""The names that tasks have in messages: they outlive the modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery import shared_task


def task(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A Celery task called `reviews.tasks.<function>`, in whatever module it stands.

    Rows of the outbox, the beat's schedule and the worker of another release know it
    by that name. `options` are Celery's own.
    """

    def make(function: Callable[..., Any]) -> Any:
        name = f"reviews.tasks.{function.__name__}"
        return shared_task(name=name, **options)(function)

    return make

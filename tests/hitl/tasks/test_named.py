from __future__ import annotations

from django.conf import settings

from hitl import tasks
from hitl.celery import SWEEPS, app


def ours() -> set[str]:
    """As the worker knows them."""
    app.loader.import_default_modules()
    return {name for name in app.tasks if name.startswith("hitl.")}


def test_a_task_is_called_by_its_function() -> None:
    """A worker of another release knows it by that name."""
    own = {name for name, task in vars(tasks).items() if hasattr(task, "apply_async")}
    assert ours() == {f"hitl.tasks.{name}" for name in own}


def test_every_promise_is_a_task() -> None:
    promised = {name for names in settings.OUTBOX_ROUTES.values() for name in names}
    named = {n for n in promised | set(SWEEPS) if n.startswith("hitl.")}
    assert named <= ours()

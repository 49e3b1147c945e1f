"""The worker's application on a broker that gives a message to somebody else while it
is still being worked on: `celery --app tests.impatient worker`. Every delivery is
written down."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from celery.signals import task_received

from hitl.celery import app

VISIBILITY_S = 2

app.conf.broker_transport_options |= {
    "visibility_timeout": VISIBILITY_S,
    "unacked_restore_interval": 1,
    "unacked_restore_throttle": 1,
}


@task_received.connect  # type: ignore[untyped-decorator]  # Celery has no types
def note(request: Any, **kwargs: Any) -> None:
    with Path(os.environ["COUNTERSEAL_TEST_DELIVERED"]).open("a") as file:
        file.write(f"{request.name}\n")

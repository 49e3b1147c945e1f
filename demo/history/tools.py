"""What the former policies of the demo call: the store's own effects and readers, in
the gate's process, by the clock of the history."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from demo.store import database, effects, readers
from journal import clock
from reviews.executors import KnownFailure
from reviews.tool_services.executors import Call


def find_store() -> Path:
    """The file of the store that `counterseal up --demo` starts."""
    return settings.COUNTERSEAL.state / "store.sqlite3"


def perform(call: Call) -> dict[str, Any]:
    """Perform an effect of the store, once per key. Raises KnownFailure for what the
    store's own rules forbid."""
    with database.set_clock(clock.now()):
        answer = effects.perform(
            find_store(), call.tool, dict(call.args), call.idempotency_key
        )
    if answer["status"] != "succeeded":
        raise KnownFailure(answer["error"]["code"], answer["error"]["detail"])
    result: dict[str, Any] = answer["result"]
    return result


def read(args: Mapping[str, Any], tool: str) -> dict[str, Any]:
    """The state that an effect would change."""
    return readers.read(find_store(), tool, args)

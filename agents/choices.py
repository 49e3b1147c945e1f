"""The words of the agents' side."""

from __future__ import annotations

from enum import StrEnum


class ThreadStatus(StrEnum):
    """Waiting is derived; pause and stop are Stop rows of the gate."""

    RUNNING = "running"
    FINISHED = "finished"


class ThreadResult(StrEnum):
    """What the agent says of its own run at the end."""

    COMPLETED = "completed"
    GAVE_UP = "gave_up"
    FAILED = "failed"

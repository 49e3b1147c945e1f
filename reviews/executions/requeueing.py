"""Whether there is a next attempt, and when."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from journal import log
from reviews import transitions
from reviews.grants import approved_tool

from ..models import Execution


def back_off(execution: Execution) -> timedelta:
    """Before the next attempt, after as many as the row counts."""
    return approved_tool.definition_of(execution).retry.after(execution.attempts)


def tries_left(execution: Execution) -> bool:
    return execution.attempts < approved_tool.definition_of(execution).retry.attempts


def requeue(
    execution: Execution,
    code: str,
    detail: str,
    due: datetime,
    actor: log.Actor,
    now: datetime,
    **changes: Any,
) -> None:
    transitions.execution.apply(
        execution,
        "requeue",
        actor=actor,
        now=now,
        changes={
            "lease_until": None,
            "due_at": due,
            "code": code,
            "detail": detail,
            **changes,
        },
        data={"execution": execution.pk, "code": code},
    )

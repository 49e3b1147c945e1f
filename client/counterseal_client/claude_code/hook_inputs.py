"""What Claude Code gives to a hook on standard input, read strictly.

The shapes are those of Claude Code 2.1.332 (`claude_agent_sdk.types`, and the inputs
that the program sent in tests/client/claude_code).
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import CountersealError, format_errors
from ..models import list_field_errors

Event = Literal["PreToolUse", "PostToolUse", "PostToolUseFailure"]
EVENTS: tuple[Event, ...] = ("PreToolUse", "PostToolUse", "PostToolUseFailure")

Name = Annotated[str, Field(min_length=1, max_length=512)]


class InvalidHookInput(CountersealError):
    """Standard input is not what Claude Code gives to a hook."""


class HookInput(BaseModel):
    """One event about one call of a tool. `error`, `is_interrupt` and `duration_ms` are
    those of a call that has ended. Fields of later releases are ignored."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    hook_event_name: Event
    session_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{1,128}$")]
    cwd: Name
    tool_name: Name
    tool_input: dict[str, Any]
    tool_use_id: Annotated[str, Field(max_length=512)] = ""
    error: str = ""
    is_interrupt: bool = False
    duration_ms: int | None = None


def read_hook_input(text: str) -> HookInput | None:
    """The event, or None for one that is not about a call of a tool. Raises
    InvalidHookInput."""
    try:
        found = json.loads(text, object_pairs_hook=_build_object)
    except (ValueError, RecursionError) as error:
        raise _refuse(f"it is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise _refuse("it is not a JSON object")
    event = found.get("hook_event_name")
    if not isinstance(event, str) or not event:
        raise _refuse("`hook_event_name` is missing")
    if event not in EVENTS:
        return None
    try:
        return HookInput.model_validate(found)
    except ValidationError as error:
        raise _refuse(format_errors(list_field_errors(error))) from error


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands in an object twice")
    return found


def _refuse(why: str) -> InvalidHookInput:
    return InvalidHookInput(
        f"This is not the input of a Claude Code hook: {why}.",
        next_step="Let Claude Code run this command as its hook.",
    )

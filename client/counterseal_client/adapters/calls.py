"""A model's tool call with its names at the gate, and what a model reads of its result.
Plain data: nothing here imports a framework."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterseal_client.errors import FieldError, InvalidArguments
from counterseal_client.operations import Details
from counterseal_client.tools import ToolResult

THREAD_NAME = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)
LONGEST_RATIONALE = 2000  # characters
TASK_SCHEMA = {
    "type": "object",
    "properties": {"task": {"type": "string"}},
    "required": ["task"],
}
"""The arguments of a tool behind which another agent sits."""


class DuplicateCallId(ValueError):
    """A message of the model has two calls with one id. None of them was proposed: an
    answer could not tell them apart."""

    def __init__(self, call_id: str) -> None:
        super().__init__(
            f"Two tool calls of one message have the id {call_id!r}. Neither was"
            " proposed. Give each call an id of its own."
        )


@dataclass(frozen=True, slots=True)
class NamedCall:
    """One tool call of a model with its names at the gate."""

    thread: str
    call_id: str
    details: Details

    @property
    def names(self) -> dict[str, Any]:
        """Keyword arguments of `GatedTool.perform` and `GatedTool.propose`."""
        return {"thread": self.thread, "call_id": self.call_id, **self.details}


def check_thread(name: str, source: str) -> str:
    """The name of the run. Raises ValueError for one that the gate does not take.
    `source` says where it came from, in the framework's words."""
    if not THREAD_NAME.fullmatch(name):
        raise ValueError(
            f"{source} is {name!r}: it must be 1 to 128 letters, digits, dots, colons,"
            " dashes or underscores, because it names the run at the gate. Choose"
            " such a name."
        )
    return name


def check_call_id(call_id: str | None, all_ids: Iterable[str | None]) -> str:
    """The id of the call. Raises ValueError for a call without one, DuplicateCallId for
    an id that stands twice among those of its message."""
    if not call_id:
        raise ValueError(
            "The tool call has no id, so an approval cannot be bound to it. Use a"
            " model that returns tool call ids."
        )
    if Counter(all_ids)[call_id] > 1:
        raise DuplicateCallId(call_id)
    return call_id


def check_call_ids(call_ids: Sequence[str]) -> None:
    """Refuse a message of the model in which an id stands twice, or a call has none,
    before any of its calls runs. Raises ValueError."""
    for call_id in call_ids:
        check_call_id(call_id, call_ids)


def parse_arguments(tool: str, given: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """The arguments of a call, as data or as JSON. Raises InvalidArguments for a text
    that is no object."""
    if isinstance(given, Mapping):
        return dict(given)
    try:
        found = json.loads(given or "{}")
    except ValueError as error:
        raise InvalidArguments(tool, [FieldError("", f"not JSON: {error}")]) from error
    if not isinstance(found, dict):
        raise InvalidArguments(tool, [FieldError("", "not an object of JSON")])
    return found


def describe_words(words: str) -> Details:
    """By default, the model's words beside its calls are the rationale of each."""
    words = words.strip()
    return {"rationale": words[:LONGEST_RATIONALE]} if words else {}


def format_result(result: ToolResult) -> str:
    """The result for the model, with a notice if a reviewer changed the call: the
    model's own message keeps the arguments that it wrote."""
    text = (
        result.value
        if isinstance(result.value, str)
        else json.dumps(result.value, default=str, ensure_ascii=False)
    )
    if result.edited:
        args = json.dumps(dict(result.args), ensure_ascii=False)
        text = f"A reviewer changed this call. Performed instead: {args}\n{text}"
    return text

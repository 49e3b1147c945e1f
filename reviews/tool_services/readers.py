"""Readers: ask a tool's own service for the current business state, before the policy
rules on an action. The agent is never the source of these values.

A reader that fails is data, not an error: `problem` has the reason and every value is
empty, so a declared key stays unresolved and the policy blocks. When the tool declares
a dry run, it is asked for that too; a failed dry run is recorded as such.

A webhook is sent `tool`, `args`, `agent` and `thread`. A function is called with the
arguments, and with those of `tool`, `agent` and `thread` that it takes by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from inspect import Parameter
from typing import Any

import structlog
from django.utils import timezone

from journal import canonical, ids
from policies import tools
from policies.callables import load_function
from policies.documents import CallableTarget, ToolDefinition, ToolReader, WebhookTarget
from reviews.outbound import webhooks

from . import executors
from .executors import Call

log = structlog.get_logger(__name__)

KEY_LENGTH = 200  # the longest key of an observation, in characters
TEXT_LENGTH = 200  # a label or the name of a source
_BY_NAME = {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}


@dataclass(frozen=True, slots=True)
class ToolReading:
    """What a reader said at one time. `before` is the state to show to people, None
    without one; `problem` is why the reader failed, or ""."""

    at: datetime
    before: dict[str, Any] | None = None
    keys: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    preconditions: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    source: str = ""
    problem: str = ""
    # The dry run's answer: `at`, and `says` with `source`, or `problem`.
    dry_run: dict[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return plain data, as a revision stores it. It shares the values of this
        reading."""
        stored: dict[str, Any] = {
            member.name: getattr(self, member.name) for member in _FIELDS
        }
        return {**stored, "at": self.at.isoformat()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ToolReading | None:
        """The reading that a revision stores; None for a tool without a reader."""
        if not stored:
            return None
        return cls(**{**stored, "at": datetime.fromisoformat(stored["at"])})


_FIELDS = fields(ToolReading)


@dataclass(frozen=True, slots=True)
class Asker:
    """The agent and the run for which a reader is asked."""

    agent: str = ""
    thread: str = ""


def read_state(
    definition: ToolDefinition,
    args: Mapping[str, Any],
    *,
    asker: Asker = Asker(),
    timeout: float = 2.0,
    rehearse: bool = True,
) -> ToolReading:
    """Ask the tool's reader about these arguments, then its dry run. Never raises.
    `timeout` is in seconds and holds for each of the two; a callable bounds itself. For
    a tool without a reader the reading is empty and has no problem. `rehearse=False`
    skips the dry run, for callers that show it to nobody. Caller holds no
    transaction."""
    query = ReaderQuery(definition.name, args, asker, timeout)
    reading = _ask_reader(definition, query)
    if not rehearse or definition.dry_run is None:
        return reading
    return replace(reading, dry_run=_ask_dry_run(definition.dry_run, query))


@dataclass(frozen=True, slots=True)
class ReaderQuery:
    """The input of a reader or a dry run; `timeout` is in seconds."""

    tool: str
    args: Mapping[str, Any]
    asker: Asker
    timeout: float

    @property
    def named(self) -> dict[str, str]:
        """The values that a function may take by name."""
        return {
            "tool": self.tool,
            "agent": self.asker.agent,
            "thread": self.asker.thread,
        }


def _ask_reader(definition: ToolDefinition, query: ReaderQuery) -> ToolReading:
    now = timezone.now()
    reader = definition.reader
    if reader is None:
        return ToolReading(at=now)
    try:
        answer = (
            _read_with_tool(definition, reader, query)
            if isinstance(reader, ToolReader)
            else _ask_target(reader, query)
        )
        return _parse_reading(definition, answer, now)
    except Exception as error:
        return ToolReading(at=now, problem=_describe_problem(error, "reader"))


def _read_with_tool(
    definition: ToolDefinition, reader: ToolReader, query: ReaderQuery
) -> dict[str, Any]:
    """Perform another tool that only reads, and return its result in the shape of a
    reader's answer. Raises MalformedAnswer."""
    tool = tools.find_current_tool(reader.tool)
    if tool is None:
        raise MalformedAnswer(f"{reader.tool} is not registered")
    args = {**reader.args}
    for name, (_, path) in reader.sources.items():
        args[name] = _find_member(query.args, path)
    if wrong := tools.list_argument_errors(tool, args):
        raise MalformedAnswer(f"{reader.tool} does not take {wrong[0]['path']}")
    call = Call(
        tool=tool.name,
        tool_version=tool.version,
        args=args,
        execution="",
        idempotency_key=ids.new("r"),  # every reading must be a new call
        fence=0,
        agent=query.asker.agent,
        thread=query.asker.thread,
    )
    target = tools.load_definition(tool)
    outcome = executors.perform_effect(target, call, timeout=query.timeout)
    result = outcome.result
    if outcome.status != "succeeded" or result is None or _is_cut(result):
        raise MalformedAnswer(
            f"{tool.name} gave no result ({outcome.code or 'too large'})"
        )
    return {
        "before": result,
        "keys": _pick_declared(definition.keys, reader, result),
        "facts": _pick_declared(definition.facts, reader, result),
        "preconditions": _pick_declared(definition.preconditions, reader, result),
        "source": target.title,
    }


def _is_cut(result: Mapping[str, Any]) -> bool:
    return result.get("truncated") is True or result.get("unreadable") is True


def _pick_declared(
    names: Iterable[str], reader: ToolReader, result: Mapping[str, Any]
) -> dict[str, Any]:
    """Pick the declared names from the result, by `take` where the reader renames them.
    Names that the result lacks are left out."""
    picked = {}
    for name in names:
        value = _find_member(
            result, reader.take.get(name, name).removeprefix("$result.")
        )
        if value is not None:
            picked[name] = value
    return picked


def _find_member(data: Any, path: str) -> Any:
    for step in path.split("."):
        data = data.get(step) if isinstance(data, Mapping) else None
    return data


def _ask_dry_run(
    rehearsal: CallableTarget | WebhookTarget, query: ReaderQuery
) -> dict[str, Any]:
    """Ask the dry run. Returns `at`, and either `says` (a text, a list of texts or an
    object) with `source`, or the `problem`."""
    at = timezone.now().isoformat()
    try:
        answer = _ask_target(rehearsal, query, dry_run=True)
        says = answer.get("says")
        if not isinstance(says, str | list | Mapping):
            raise MalformedAnswer("says is no text, list or object")
        return {
            "at": at,
            "says": says,
            "source": _parse_text("source", answer.get("source", "")),
        }
    except Exception as error:
        return {"at": at, "problem": _describe_problem(error, "dry run")}


def _describe_problem(error: Exception, what: str) -> str:
    """Say why a reader or dry run failed. Of an unexpected error only its type is kept:
    its text may quote the arguments."""
    if isinstance(error, webhooks.NotSent | webhooks.NoUsableAnswer | MalformedAnswer):
        problem = str(error)
    else:
        problem = type(error).__name__
        log.error("look_up_raised", what=what, error=problem)
    return problem[:TEXT_LENGTH] or f"the {what} failed"


class MalformedAnswer(Exception):
    """A reader's answer does not have the contract's shape."""


def _ask_target(
    target: CallableTarget | WebhookTarget, query: ReaderQuery, **more: Any
) -> Mapping[str, Any]:
    if isinstance(target, WebhookTarget):
        payload = {**query.named, "args": dict(query.args), **more}
        reply = webhooks.post_signed_json(target.url, payload, timeout=query.timeout)
        return reply.document()
    function = load_function(target.path)
    answer = function(dict(query.args), **_match_parameters(function, query.named))
    if not isinstance(answer, Mapping):
        raise MalformedAnswer("it did not return a mapping")
    if len(canonical.encode(dict(answer))) > webhooks.REPLY_LIMIT:
        raise MalformedAnswer("it returned too much")
    return answer


def _match_parameters(function: Any, named: Mapping[str, str]) -> dict[str, str]:
    """Pick the values that a function takes by name; it may take the arguments only."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # the function has no signature
        return {}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return dict(named)
    taken = {
        parameter.name for parameter in parameters[1:] if parameter.kind in _BY_NAME
    }
    return {name: value for name, value in named.items() if name in taken}


def _parse_reading(
    definition: ToolDefinition, answer: Mapping[str, Any], now: datetime
) -> ToolReading:
    """Build the reading from an answer. Only declared keys and preconditions are kept;
    one malformed value makes the whole answer malformed. Raises MalformedAnswer."""
    before = answer.get("before")
    keys = _parse_mapping(answer, "keys")
    preconditions = _parse_mapping(answer, "preconditions")
    return ToolReading(
        at=now,
        before=None if before is None else _parse_mapping(answer, "before"),
        keys={k: _parse_key(k, keys[k]) for k in definition.keys if k in keys},
        facts={
            k: _parse_fact(k, v) for k, v in _parse_mapping(answer, "facts").items()
        },
        preconditions={
            k: preconditions[k] for k in definition.preconditions if k in preconditions
        },
        labels={
            k: _parse_text(k, v) for k, v in _parse_mapping(answer, "labels").items()
        },
        source=_parse_text("source", answer.get("source", "")),
    )


def _parse_mapping(answer: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = answer.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise MalformedAnswer(f"{name} is not an object")
    return dict(value)


def _parse_key(name: str, value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= KEY_LENGTH:
        raise MalformedAnswer(
            f"the key {name} is not a text of 1 to {KEY_LENGTH} characters"
        )
    return value


def _parse_fact(name: str, value: Any) -> Any:
    if value is not None and not isinstance(value, bool | int | float | str):
        raise MalformedAnswer(f"the fact {name} is not a single value")
    return value


def _parse_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise MalformedAnswer(f"{name} is not a text")
    return value[:TEXT_LENGTH]

"""What the world looks like now: a tool's own reader, asked before anything is decided.

The gate reads; the agent is never the source of these values. A reader that fails is
data, not an error: `problem` says why and every value is empty, so that a declared key
stays unresolved and the policy blocks (gate.md 5). A tool that can rehearse its effect
is asked for that as well; a dry run that fails is said to have failed.

A webhook is sent `tool`, `args`, `agent` and `thread`. A function is called with the
arguments, and with those of `tool`, `agent` and `thread` that it takes by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from inspect import Parameter
from typing import Any

import structlog
from django.utils import timezone

from journal import canonical, ids
from policies import tools
from policies.documents import CallableTarget, ToolDefinition, ToolReader, WebhookTarget
from reviews.outbound import webhooks
from reviews.outbound.callables import load

from . import executors
from .executors import Call

log = structlog.get_logger(__name__)

KEY_LENGTH = 200  # what one observation's key may hold
TEXT_LENGTH = 200  # a label or the name of a source
_BY_NAME = {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at the business state. `before` is None when there is none to show."""

    at: datetime
    before: dict[str, Any] | None = None
    keys: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    preconditions: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    source: str = ""
    problem: str = ""
    # What the tool says would happen: `says`, `source`, `at`, `problem`.
    dry_run: dict[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain data, as a revision keeps it."""
        return {**asdict(self), "at": self.at.isoformat()}


@dataclass(frozen=True, slots=True)
class Asker:
    """In whose name a reader is asked: the agent, and its run."""

    agent: str = ""
    thread: str = ""


def read(
    definition: ToolDefinition,
    args: Mapping[str, Any],
    *,
    asker: Asker = Asker(),
    timeout: float = 2.0,
    rehearse: bool = True,
) -> Reading:
    """Ask the tool's reader about these arguments, and its dry run. Never raises.

    `timeout` is in seconds and holds for each; a callable bounds itself. A tool without
    a reader gives an empty reading without a problem. Without `rehearse` no dry run is
    asked for: nobody will look at it. Caller holds no transaction.
    """
    question = Question(definition.name, args, asker, timeout)
    found = _read(definition, question)
    if not rehearse or definition.dry_run is None:
        return found
    return replace(found, dry_run=_rehearsed(definition.dry_run, question))


@dataclass(frozen=True, slots=True)
class Question:
    """What a reader is asked; `timeout` is in seconds."""

    tool: str
    args: Mapping[str, Any]
    asker: Asker
    timeout: float

    @property
    def named(self) -> dict[str, str]:
        return {
            "tool": self.tool,
            "agent": self.asker.agent,
            "thread": self.asker.thread,
        }


def _read(definition: ToolDefinition, question: Question) -> Reading:
    now = timezone.now()
    reader = definition.reader
    if reader is None:
        return Reading(at=now)
    try:
        answer = (
            _by_tool(definition, reader, question)
            if isinstance(reader, ToolReader)
            else _ask(reader, question)
        )
        return _checked(definition, answer, now)
    except Exception as error:
        return Reading(at=now, problem=_problem(error, "reader"))


def _by_tool(
    definition: ToolDefinition, reader: ToolReader, question: Question
) -> dict[str, Any]:
    """The result of a tool that only reads, in the shape of a reader's answer."""
    tool = tools.current(reader.tool)
    if tool is None:
        raise Malformed(f"{reader.tool} is not registered")
    args = {**reader.args}
    for name, (_, path) in reader.sources.items():
        args[name] = _member(question.args, path)
    if wrong := tools.validate(tool, args):
        raise Malformed(f"{reader.tool} does not take {wrong[0]['path']}")
    call = Call(
        tool=tool.name,
        tool_version=tool.version,
        args=args,
        execution="",
        idempotency_key=ids.new("r"),  # each look is a look of its own
        fence=0,
        agent=question.asker.agent,
        thread=question.asker.thread,
    )
    target = tools.definition(tool)
    outcome = executors.perform(target, call, timeout=question.timeout)
    result = outcome.result
    if outcome.status != "succeeded" or result is None or _is_cut(result):
        raise Malformed(f"{tool.name} gave no result ({outcome.code or 'too large'})")
    return {
        "before": result,
        "keys": _taken(definition.keys, reader, result),
        "facts": _taken(definition.facts, reader, result),
        "preconditions": _taken(definition.preconditions, reader, result),
        "source": target.title,
    }


def _is_cut(result: Mapping[str, Any]) -> bool:
    return result.get("truncated") is True or result.get("unreadable") is True


def _taken(
    names: Iterable[str], reader: ToolReader, result: Mapping[str, Any]
) -> dict[str, Any]:
    """The declared names as the result has them; what it has not is left out."""
    found = {}
    for name in names:
        value = _member(result, reader.take.get(name, name).removeprefix("$result."))
        if value is not None:
            found[name] = value
    return found


def _member(data: Any, path: str) -> Any:
    for step in path.split("."):
        data = data.get(step) if isinstance(data, Mapping) else None
    return data


def _rehearsed(
    rehearsal: CallableTarget | WebhookTarget, question: Question
) -> dict[str, Any]:
    """`{says: a text, a list of texts or an object, source}`, or why there is none."""
    found: dict[str, Any] = {"at": timezone.now().isoformat()}
    try:
        answer = _ask(rehearsal, question, dry_run=True)
        says = answer.get("says")
        if not isinstance(says, str | list | Mapping):
            raise Malformed("says is no text, list or object")
        return {
            **found,
            "says": says,
            "source": _text("source", answer.get("source", "")),
        }
    except Exception as error:
        return {**found, "problem": _problem(error, "dry run")}


def _problem(error: Exception, what: str) -> str:
    """Why it failed; the text of someone else's error may quote the arguments."""
    if isinstance(error, webhooks.NotSent | webhooks.Ambiguous | Malformed):
        problem = str(error)
    else:
        problem = type(error).__name__
        log.error("look_up_raised", what=what, error=problem)
    return problem[:TEXT_LENGTH] or f"the {what} failed"


class Malformed(Exception):
    """The reader answered in another shape than the contract's."""


def _ask(
    target: CallableTarget | WebhookTarget, question: Question, **more: Any
) -> Mapping[str, Any]:
    if isinstance(target, WebhookTarget):
        payload = {**question.named, "args": dict(question.args), **more}
        reply = webhooks.post(target.url, payload, timeout=question.timeout)
        return reply.document()
    function = load(target.path)
    answer = function(dict(question.args), **_wanted(function, question.named))
    if not isinstance(answer, Mapping):
        raise Malformed("it did not return a mapping")
    if len(canonical.encode(dict(answer))) > webhooks.REPLY_LIMIT:
        raise Malformed("it returned too much")
    return answer


def _wanted(function: Any, named: Mapping[str, str]) -> dict[str, str]:
    """What a function takes by name beside the arguments; one of an earlier release
    takes these alone."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # it does not say what it takes
        return {}
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return dict(named)
    taken = {one.name for one in parameters[1:] if one.kind in _BY_NAME}
    return {name: value for name, value in named.items() if name in taken}


def _checked(
    definition: ToolDefinition, answer: Mapping[str, Any], now: datetime
) -> Reading:
    """Only declared keys and preconditions are taken; any wrong shape refuses all."""
    before = answer.get("before")
    keys = _mapping(answer, "keys")
    preconditions = _mapping(answer, "preconditions")
    return Reading(
        at=now,
        before=None if before is None else _mapping(answer, "before"),
        keys={k: _key(k, keys[k]) for k in definition.keys if k in keys},
        facts={k: _fact(k, v) for k, v in _mapping(answer, "facts").items()},
        preconditions={
            k: preconditions[k] for k in definition.preconditions if k in preconditions
        },
        labels={k: _text(k, v) for k, v in _mapping(answer, "labels").items()},
        source=_text("source", answer.get("source", "")),
    )


def _mapping(answer: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = answer.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Malformed(f"{name} is not an object")
    return dict(value)


def _key(name: str, value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= KEY_LENGTH:
        raise Malformed(f"the key {name} is not a text of 1 to {KEY_LENGTH} characters")
    return value


def _fact(name: str, value: Any) -> Any:
    if value is not None and not isinstance(value, bool | int | float | str):
        raise Malformed(f"the fact {name} is not a single value")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise Malformed(f"{name} is not a text")
    return value[:TEXT_LENGTH]

"""What the world looks like now: a tool's own reader, asked before anything is decided.

The gate reads; the agent is never the source of these values. A reader that fails is
data, not an error: `problem` says why and every value is empty, so that a declared key
stays unresolved and the policy blocks (gate.md 5). A tool that can rehearse its effect
is asked for that as well; a dry run that fails is said to have failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

import structlog
from django.utils import timezone

from journal import canonical
from policies.documents import CallableTarget, ToolDefinition, WebhookTarget

from . import webhooks
from .functions import load

log = structlog.get_logger(__name__)

KEY_LENGTH = 200  # what one observation's key may hold
TEXT_LENGTH = 200  # a label or the name of a source


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


def read(
    definition: ToolDefinition,
    args: Mapping[str, Any],
    *,
    timeout: float = 2.0,
    rehearse: bool = True,
) -> Reading:
    """Ask the tool's reader about these arguments, and its dry run. Never raises.

    `timeout` is in seconds and holds for each; a callable bounds itself. A tool without
    a reader gives an empty reading without a problem. Without `rehearse` no dry run is
    asked for: nobody will look at it. Caller holds no transaction.
    """
    found = _read(definition, args, timeout)
    if not rehearse or definition.dry_run is None:
        return found
    return replace(found, dry_run=_rehearsed(definition, args, timeout))


def _read(
    definition: ToolDefinition, args: Mapping[str, Any], timeout: float
) -> Reading:
    now = timezone.now()
    if definition.reader is None:
        return Reading(at=now)
    try:
        answer = _ask(definition.reader, definition.name, args, timeout)
        return _checked(definition, answer, now)
    except Exception as error:
        return Reading(at=now, problem=_problem(error, "reader"))


def _rehearsed(
    definition: ToolDefinition, args: Mapping[str, Any], timeout: float
) -> dict[str, Any]:
    """`{says: a text, a list of texts or an object, source}`, or why there is none."""
    found: dict[str, Any] = {"at": timezone.now().isoformat()}
    if definition.dry_run is None:
        return found
    try:
        answer = _ask(definition.dry_run, definition.name, args, timeout, dry_run=True)
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
    target: CallableTarget | WebhookTarget,
    tool: str,
    args: Mapping[str, Any],
    timeout: float,
    **more: Any,
) -> Mapping[str, Any]:
    if isinstance(target, WebhookTarget):
        payload = {"tool": tool, "args": dict(args), **more}
        return webhooks.post(target.url, payload, timeout=timeout).document()
    answer = load(target.path)(dict(args))
    if not isinstance(answer, Mapping):
        raise Malformed("it did not return a mapping")
    if len(canonical.encode(dict(answer))) > webhooks.REPLY_LIMIT:
        raise Malformed("it returned too much")
    return answer


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

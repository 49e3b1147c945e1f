"""What the world looks like now: a tool's own reader, asked before anything is decided.

The gate reads; the agent is never the source of these values. A reader that fails is
data, not an error: `problem` says why and every value is empty, so that a declared key
stays unresolved and the policy blocks (gate.md 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import structlog
from django.utils import timezone

from journal import canonical
from policies.documents import ToolDefinition

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

    def as_json(self) -> dict[str, Any]:
        """Plain data, as a revision keeps it."""
        return {**asdict(self), "at": self.at.isoformat()}


def read(
    definition: ToolDefinition, args: Mapping[str, Any], *, timeout: float = 2.0
) -> Reading:
    """Ask the tool's reader about these arguments. Never raises.

    `timeout` is in seconds; a callable reader bounds itself. A tool without a reader
    gives an empty reading without a problem. Caller holds no transaction.
    """
    now = timezone.now()
    if definition.reader is None:
        return Reading(at=now)
    try:
        return _checked(definition, _ask(definition, args, timeout), now)
    except (webhooks.NotSent, webhooks.Ambiguous, Malformed) as error:
        problem = str(error)
    except Exception as error:
        # A reader is someone else's code; its text may quote the arguments.
        problem = type(error).__name__
        log.error("reader_raised", reader=definition.reader.kind, error=problem)
    return Reading(at=now, problem=problem[:TEXT_LENGTH] or "the reader failed")


class Malformed(Exception):
    """The reader answered in another shape than the contract's."""


def _ask(
    definition: ToolDefinition, args: Mapping[str, Any], timeout: float
) -> Mapping[str, Any]:
    reader = definition.reader
    if reader is None:
        raise Malformed("the tool declares no reader")
    if reader.kind == "webhook":
        payload = {"tool": definition.name, "args": dict(args)}
        return webhooks.post(reader.url, payload, timeout=timeout).document()
    answer = load(reader.path)(dict(args))
    if not isinstance(answer, Mapping):
        raise Malformed("the reader did not return a mapping")
    if len(canonical.encode(dict(answer))) > webhooks.REPLY_LIMIT:
        raise Malformed("the reader returned too much")
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

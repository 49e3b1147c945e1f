"""Effects in this process: a Python function named by the policy as `module.function`.

It takes a `Call` and returns a JSON object or None. It bounds its own waiting: a
function cannot be interrupted safely, the worker's time limits are the last resort.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog

from reviews.outbound.callables import NotListed, load
from reviews.tool_services.executors import (
    Call,
    KnownFailure,
    Outcome,
    failed,
    succeeded,
    unknown,
)

log = structlog.get_logger(__name__)


def perform(path: str, call: Call) -> Outcome:
    """Run it once. Only `KnownFailure`, or no such function here and now, says nothing
    happened."""
    try:
        function = load(path)
    except NotListed as error:
        return _not_begun("callable_not_listed", str(error))
    except Exception as error:
        return _not_begun("no_such_callable", f"{path}: {type(error).__name__}")
    try:
        return succeeded(function(call))
    except KnownFailure as failure:
        return failed(failure.code, failure.detail, again=failure.again)
    except Exception as error:
        # Whatever went wrong, it went wrong after the function had begun.
        # Its text may quote the arguments, so neither the log nor the row repeats it.
        name = type(error).__name__
        log.error("callable_raised", path=path, execution=call.execution, error=name)
        return unknown("callable_raised", name)


def _not_begun(code: str, detail: str) -> Outcome:
    # Another host, or this one before it was changed, may have begun it.
    return replace(failed(code, detail), this_attempt_only=True)


def look_up(path: str, call: Call) -> Mapping[str, Any]:
    """What the function says of an earlier attempt: `{"status", "result"}`."""
    answer = load(path)(call)
    if not isinstance(answer, Mapping):
        raise TypeError(f"{path} did not return a mapping")
    return answer
